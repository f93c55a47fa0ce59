// What was asked for lately, in memory: bounded in bytes. What goes is what was not asked for since it was put in or last passed over: to ask is a look-up and
// one mark, for it happens several times with every request.

/** The value goes when it is dropped: what a Map has lost, its tables of before may still hold. */
type HeldValue<V> = { value: V | undefined; readonly bytes: number; isUsed: boolean };

export class HotMemory<K, V> {
  readonly #bytesMax: number;
  /** In the order in which they are looked at when there is too much. */
  readonly #held = new Map<K, HeldValue<V>>();
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
    held.isUsed = true;
    return held.value;
  }

  /** Puts a value in. One that is larger than all there may be is not held. */
  put(key: K, value: V, bytes: number): void {
    this.drop(key);
    if (bytes > this.#bytesMax) return;
    this.#held.set(key, { value, bytes, isUsed: false });
    this.#bytes += bytes;
    for (const [oldest, held] of this.#held) {
      if (this.#bytes <= this.#bytesMax) return;
      if (oldest !== key && !held.isUsed) this.drop(oldest);
      else {
        // It is looked at again when all others were.
        held.isUsed = false;
        this.#held.delete(oldest);
        this.#held.set(oldest, held);
      }
    }
  }

  drop(key: K): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#bytes -= held.bytes;
    held.value = undefined;
    this.#held.delete(key);
  }

  clear(): void {
    this.#held.clear();
    this.#bytes = 0;
  }
}

// Bodies that were asked for lately, in memory, one cache per worker. Keyed by entry id, which is never reused.

/** Larger bodies are streamed from disk: the kernel keeps those warm. */
export const hotBodyBytesMax = 262_144;
/** Of the map's slot, the array and its buffer, beside the bytes. */
const overheadBytes = 256;

export class HotBodies {
  readonly #bodies: HotMemory<number, Uint8Array>;

  constructor(bytesMax: number) {
    this.#bodies = new HotMemory(bytesMax);
  }

  get(id: number): Uint8Array | undefined {
    return this.#bodies.get(id);
  }

  put(id: number, body: Uint8Array): void {
    if (body.length > hotBodyBytesMax) return;
    this.#bodies.put(id, body, body.length + overheadBytes);
  }

  drop(id: number): void {
    this.#bodies.drop(id);
  }

  clear(): void {
    this.#bodies.clear();
  }
}
