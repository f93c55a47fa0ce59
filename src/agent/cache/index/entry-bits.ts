// One bit per entry id in growable shared memory. The index thread writes, workers read in the same step as writeHead. There are two such memories:
//
//   servable   1: it may be served at all. Ids are never reused, so a bit that fell to 0 stays 0
//   fresh      1: no soft clear has made it stale since its origin sent or confirmed it. A confirmation sets the bit again
//
// Bit i of word w stands for id = base + 32·w + i. What lies outside is 0: neither servable nor fresh.

/** Bit i of word w stands for id = first + 32·w + i. */
export type IdBits = { readonly first: number; readonly words: Uint32Array };

/** 2^28 ids from the oldest live to the newest: 32 MiB when full. A wider span makes the index anew, once in weeks at a hundred fills per second. */
export const idSpanMax = 2 ** 28;
/** Grown by 4 KiB at least: 32,768 ids. */
const growBytes = 4_096;

export class EntryBits {
  readonly buffer: SharedArrayBuffer;
  readonly baseId: number;
  /** As long as the memory was when it was last asked: one that follows its growth would ask at each access. */
  #words: Int32Array;

  constructor(buffer: SharedArrayBuffer, baseId: number) {
    this.buffer = buffer;
    this.baseId = baseId;
    this.#words = wordsOf(buffer);
  }

  static allocate(baseId: number): EntryBits {
    return new EntryBits(
      new SharedArrayBuffer(growBytes, { maxByteLength: idSpanMax / 8 }),
      baseId,
    );
  }

  has(id: number): boolean {
    const offset = id - this.baseId;
    const word = Math.floor(offset / 32);
    if (offset < 0 || !this.#reaches(word)) return false;
    return (Atomics.load(this.#words, word) & (1 << (offset % 32))) !== 0;
  }

  hasAnyUpTo(id: number): boolean {
    this.#follow();
    const offset = Math.min(id - this.baseId, this.#words.length * 32 - 1);
    if (offset < 0) return false;
    const last = Math.floor(offset / 32);
    for (let word = 0; word < last; word++) if (Atomics.load(this.#words, word) !== 0) return true;
    return (Atomics.load(this.#words, last) & (0xff_ff_ff_ff >>> (31 - (offset % 32)))) !== 0;
  }

  /** Sets the bits of ids, which ascend and are below `baseId + idSpanMax`. One access to the shared memory a word. */
  set(ids: readonly number[]): void {
    const last = ids.at(-1);
    if (last === undefined) return;
    const lastWord = Math.floor((last - this.baseId) / 32);
    if (!this.#reaches(lastWord)) this.#growFor(lastWord);
    let [word, mask] = [0, 0];
    for (const id of ids) {
      const offset = id - this.baseId;
      const next = Math.floor(offset / 32);
      if (next !== word) {
        Atomics.or(this.#words, word, mask);
        [word, mask] = [next, 0];
      }
      mask |= 1 << (offset % 32);
    }
    Atomics.or(this.#words, word, mask);
  }

  unset(id: number): void {
    const offset = id - this.baseId;
    const word = Math.floor(offset / 32);
    if (offset < 0 || !this.#reaches(word)) return;
    Atomics.and(this.#words, word, ~(1 << (offset % 32)));
  }

  /** Returns the bits as they are now, for the thread that writes them. */
  snapshot(): IdBits {
    this.#follow();
    return { first: this.baseId, words: new Uint32Array(this.#words) };
  }

  /** Unsets the bits of ids, which ascend. Returns those that were set, in their order. One access to the shared memory a word: half a million ids in milliseconds. */
  take(ids: Float64Array): Float64Array {
    this.#follow();
    const taken = new Float64Array(ids.length);
    const offsetAt = (at: number): number => (ids[at] ?? 0) - this.baseId;
    const size = this.#words.length;
    let count = 0;
    for (let at = 0; at < ids.length;) {
      const word = Math.floor(offsetAt(at) / 32);
      let mask = 0;
      let end = at;
      for (; end < ids.length && offsetAt(end) < (word + 1) * 32; end++)
        mask |= 1 << (offsetAt(end) % 32);
      const before = word < 0 || word >= size ? 0 : Atomics.and(this.#words, word, ~mask);
      for (; at < end; at++)
        if ((before & (1 << (offsetAt(at) % 32))) !== 0) taken[count++] = ids[at] ?? 0;
    }
    return taken.slice(0, count);
  }

  #growFor(word: number): void {
    const wanted = Math.max((word + 1) * 4, this.buffer.byteLength * 2);
    const bytes = Math.ceil(wanted / growBytes) * growBytes;
    this.buffer.grow(Math.min(bytes, this.buffer.maxByteLength));
    this.#follow();
  }

  #reaches(word: number): boolean {
    if (word >= this.#words.length) this.#follow();
    return word < this.#words.length;
  }

  /** Another thread may have made the memory grow. */
  #follow(): void {
    if (this.buffer.byteLength > this.#words.byteLength) this.#words = wordsOf(this.buffer);
  }
}

function wordsOf(buffer: SharedArrayBuffer): Int32Array {
  return new Int32Array(buffer, 0, buffer.byteLength / Int32Array.BYTES_PER_ELEMENT);
}
