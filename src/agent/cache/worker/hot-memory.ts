// What was asked for lately, in memory: bounded in bytes, the longest unused goes first.

export class HotMemory<K, V> {
  readonly #bytesMax: number;
  /** The values in order of last use. */
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

  /** Puts a value in. One that is larger than all there may be is not held. */
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

// Bodies that were asked for lately, in memory, one cache per worker. Keyed by entry id, which is never reused.

/** Bodies up to here are sent as strings: they never change, and are cheaper to write than bytes. */
const textBytesMax = 16_384;
/** Larger bodies are streamed from disk: the kernel keeps those warm. */
export const hotBodyBytesMax = 262_144;
/** Of the map's slot, the array and its buffer, beside the bytes. */
const overheadBytes = 256;

type HotBody = { readonly bytes: Uint8Array; readonly text: string | undefined };

export class HotBodies {
  readonly #bodies: HotMemory<number, HotBody>;

  constructor(bytesMax: number) {
    this.#bodies = new HotMemory(bytesMax);
  }

  get(id: number): Uint8Array | undefined {
    return this.#bodies.get(id)?.bytes;
  }

  /** Returns what to write of a body: a small one as a string of one character a byte, which is made when it is first asked for. */
  sendable(id: number): string | Uint8Array | undefined {
    const body = this.#bodies.get(id);
    if (body === undefined) return undefined;
    if (body.text !== undefined) return body.text;
    const { bytes } = body;
    if (bytes.length > textBytesMax) return bytes;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    this.#bodies.put(id, { bytes, text }, 2 * bytes.length + overheadBytes);
    return text;
  }

  put(id: number, body: Uint8Array): void {
    if (body.length > hotBodyBytesMax) return;
    const bytes = body.length + overheadBytes;
    this.#bodies.put(id, { bytes: body, text: undefined }, bytes);
  }

  drop(id: number): void {
    this.#bodies.drop(id);
  }

  clear(): void {
    this.#bodies.clear();
  }
}
