// What was asked for lately, in memory: bounded in bytes, the longest unused goes first.

export class HotMemory<K, V> {
  readonly #bytesMax: number;
  /** In order of last use. */
  readonly #held = new Map<K, { readonly value: V; readonly bytes: number }>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: K): V | undefined {
    const held = this.#held.get(key);
    if (held === undefined) return undefined;
    this.#held.delete(key);
    this.#held.set(key, held);
    return held.value;
  }

  /** What is larger than all there may be is not held. */
  put(key: K, value: V, bytes: number): void {
    this.drop(key);
    if (bytes > this.#bytesMax) return;
    this.#held.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#held.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.drop(oldest);
    }
  }

  drop(key: K): void {
    this.#bytes -= this.#held.get(key)?.bytes ?? 0;
    this.#held.delete(key);
  }

  clear(): void {
    this.#held.clear();
    this.#bytes = 0;
  }
}
