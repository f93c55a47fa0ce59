// Which blobs somebody relies on though nothing written says so yet: those asked for lately, and all that
// were asked for under a hold.

type Hold = { readonly sinceMs: number; endedMs: number | undefined };

export class BlobUses {
  readonly #nowMs: () => number;
  readonly #forMs: number;
  /** When each key was asked for last. Keys that no longer count are forgotten at each collection. */
  readonly #asked = new Map<number, number>();
  readonly #holds = new Set<Hold>();

  constructor(nowMs: () => number, forMs: number) {
    this.#nowMs = nowMs;
    this.#forMs = forMs;
  }

  note(key: number): void {
    this.#asked.set(key, this.#nowMs());
  }

  isUsed(key: number): boolean {
    return (this.#asked.get(key) ?? -Infinity) > this.#since();
  }

  /**
   * Begins a hold. It still counts for a while after it was disposed, for what was prepared under it is
   * committed then.
   */
  hold(): Disposable {
    const hold: Hold = { sinceMs: this.#nowMs(), endedMs: undefined };
    this.#holds.add(hold);
    return { [Symbol.dispose]: () => void (hold.endedMs = this.#nowMs()) };
  }

  forget(): void {
    const longAgoMs = this.#nowMs() - this.#forMs;
    for (const hold of this.#holds)
      if (hold.endedMs !== undefined && hold.endedMs <= longAgoMs) this.#holds.delete(hold);
    const since = this.#since();
    for (const [key, atMs] of this.#asked) if (atMs <= since) this.#asked.delete(key);
  }

  /** Returns the time since which a blob must have been asked for to count as used. */
  #since(): number {
    let since = this.#nowMs() - this.#forMs;
    // One millisecond earlier, to include what was asked for in the same instant.
    for (const { sinceMs } of this.#holds) since = Math.min(since, sinceMs - 1);
    return since;
  }
}
