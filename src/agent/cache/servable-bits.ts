// One bit per entry id in growable shared memory: 1 is servable. The index thread writes, workers read in the same step as writeHead.
//
// Bit i of word w stands for id = base + 32·w + i. Ids are never reused, so a bit that fell to 0 stays 0; what lies outside is not servable.

/** 2^28 ids from the oldest live to the newest: 32 MiB when full. A wider span makes the index anew, once in weeks at a hundred fills per second. */
export const idSpanMax = 2 ** 28;
/** Grown by 4 KiB at least: 32,768 ids. */
const growBytes = 4_096;

export class ServableBits {
  readonly buffer: SharedArrayBuffer;
  readonly baseId: number;
  /** Follows the buffer's growth: made without a length. */
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer, baseId: number) {
    this.buffer = buffer;
    this.baseId = baseId;
    this.#words = new Int32Array(buffer);
  }

  static allocate(baseId: number): ServableBits {
    return new ServableBits(
      new SharedArrayBuffer(growBytes, { maxByteLength: idSpanMax / 8 }),
      baseId,
    );
  }

  has(id: number): boolean {
    const offset = id - this.baseId;
    const word = Math.floor(offset / 32);
    if (offset < 0 || word >= this.#words.length) return false;
    return (Atomics.load(this.#words, word) & (1 << (offset % 32))) !== 0;
  }

  /** The id must be below `baseId + idSpanMax`. */
  set(id: number): void {
    const offset = id - this.baseId;
    const word = Math.floor(offset / 32);
    if (word >= this.#words.length) this.#growFor(word);
    Atomics.or(this.#words, word, 1 << (offset % 32));
  }

  unset(id: number): void {
    const offset = id - this.baseId;
    const word = Math.floor(offset / 32);
    if (offset < 0 || word >= this.#words.length) return;
    Atomics.and(this.#words, word, ~(1 << (offset % 32)));
  }

  #growFor(word: number): void {
    const wanted = Math.max((word + 1) * 4, this.buffer.byteLength * 2);
    const bytes = Math.ceil(wanted / growBytes) * growBytes;
    this.buffer.grow(Math.min(bytes, this.buffer.maxByteLength));
  }
}
