// Bodies that were asked for lately, in memory, one cache per worker: bounded in bytes, the longest unused goes first. Keyed by entry id, which is never reused.

/** Larger bodies are streamed from disk: the kernel keeps those warm. */
export const hotBodyBytesMax = 262_144;

export class HotBodies {
  readonly #bytesMax: number;
  /** In order of last use. */
  readonly #bodies = new Map<number, Uint8Array>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(id: number): Uint8Array | undefined {
    const body = this.#bodies.get(id);
    if (body === undefined) return undefined;
    this.#bodies.delete(id);
    this.#bodies.set(id, body);
    return body;
  }

  put(id: number, body: Uint8Array): void {
    if (body.length > hotBodyBytesMax || body.length > this.#bytesMax) return;
    this.drop(id);
    this.#bodies.set(id, body);
    this.#bytes += body.length;
    for (const oldest of this.#bodies.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.drop(oldest);
    }
  }

  drop(id: number): void {
    this.#bytes -= this.#bodies.get(id)?.length ?? 0;
    this.#bodies.delete(id);
  }

  clear(): void {
    this.#bodies.clear();
    this.#bytes = 0;
  }
}
