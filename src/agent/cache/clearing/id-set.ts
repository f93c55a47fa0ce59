// A set of entry ids as a bitmap over their span: lists of half a million ids are united, intersected and sorted in milliseconds, and go from process to
// process as they are.

import { idSpanMax, type IdBits } from "../index/entry-bits.ts";

export class IdSet {
  readonly #first: number;
  readonly #words: Uint32Array;

  /** Makes the set of all ids of the lists, of which one at a time is held. Throws RangeError where they span more than any index. */
  static of(lists: Iterable<readonly number[]>): IdSet {
    let all = IdSet.#empty(0, 0);
    for (const list of lists) all = all.#unite(IdSet.#ofOne(list));
    return all;
  }

  static #ofOne(list: readonly number[]): IdSet {
    let first = Infinity;
    let last = -Infinity;
    for (const id of list) {
      if (id < first) first = id;
      if (id > last) last = id;
    }
    if (first > last) return IdSet.#empty(0, 0);
    first -= first % 32; // So that words of two sets are of the same ids.
    const set = IdSet.#empty(first, last - first + 1);
    set.#addAll(list);
    return set;
  }

  static #empty(first: number, span: number): IdSet {
    if (span > idSpanMax) throw new RangeError("ids span more than any index");
    return new IdSet({ first, words: new Uint32Array(Math.ceil(span / 32)) });
  }

  constructor({ first, words }: IdBits) {
    this.#first = first;
    this.#words = words;
  }

  get bits(): IdBits {
    return { first: this.#first, words: this.#words };
  }

  /** Returns the ids that both have. */
  intersect(other: IdSet): IdSet {
    if (other.#words.length < this.#words.length) return other.intersect(this);
    const words = this.#words.map((word, at) =>
      word === 0 ? 0 : word & other.#wordFrom(this.#first + at * 32),
    );
    return new IdSet({ first: this.#first, words });
  }

  ascending(): Float64Array {
    let count = 0;
    for (const word of this.#words) count += bitCount(word);
    const ids = new Float64Array(count);
    let at = 0;
    this.#words.forEach((word, no) => {
      for (let rest = word; rest !== 0; rest &= rest - 1)
        ids[at++] = this.#first + no * 32 + (31 - Math.clz32(rest & -rest));
    });
    return ids;
  }

  /** Returns the bits of the 32 ids from there on. */
  #wordFrom(id: number): number {
    const offset = id - this.#first;
    const word = Math.floor(offset / 32);
    const shift = offset - word * 32;
    const low = (this.#words[word] ?? 0) >>> shift;
    return shift === 0 ? low : low | ((this.#words[word + 1] ?? 0) << (32 - shift));
  }

  #unite(other: IdSet): IdSet {
    if (this.#words.length === 0) return other;
    if (other.#words.length === 0) return this;
    const first = Math.min(this.#first, other.#first);
    const end = Math.max(this.#end, other.#end);
    const both = IdSet.#empty(first, end - first);
    both.#words.set(this.#words, (this.#first - first) / 32);
    const at = (other.#first - first) / 32;
    other.#words.forEach((word, no) => {
      if (word !== 0) both.#words[at + no] = (both.#words[at + no] ?? 0) | word;
    });
    return both;
  }

  get #end(): number {
    return this.#first + this.#words.length * 32;
  }

  #addAll(ids: readonly number[]): void {
    for (const id of ids) {
      const offset = id - this.#first;
      const word = Math.floor(offset / 32);
      this.#words[word] = (this.#words[word] ?? 0) | (1 << (offset % 32));
    }
  }
}

/** Hacker's Delight, 5-2. */
function bitCount(word: number): number {
  const pairs = word - ((word >>> 1) & 0x5555_5555);
  const quads = (pairs & 0x3333_3333) + ((pairs >>> 2) & 0x3333_3333);
  return Math.imul((quads + (quads >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}
