// A set of entry ids as a bitmap over their span: lists of half a million ids are united, intersected and sorted in milliseconds.

import { idSpanMax } from "./servable-bits.ts";

export class IdSet {
  readonly #first: number;
  readonly #words: Uint32Array;

  /** All ids of the lists. Throws RangeError where they span more than any index. */
  static of(lists: readonly (readonly number[])[]): IdSet {
    let first = Infinity;
    let last = -Infinity;
    for (const list of lists)
      for (const id of list) {
        if (id < first) first = id;
        if (id > last) last = id;
      }
    if (first > last) return new IdSet(0, 0);
    const set = new IdSet(first, last - first + 1);
    for (const list of lists) set.#addAll(list);
    return set;
  }

  private constructor(first: number, span: number) {
    if (span > idSpanMax) throw new RangeError("ids span more than any index");
    this.#first = first;
    this.#words = new Uint32Array(Math.ceil(span / 32));
  }

  /** What both have. */
  intersect(ids: readonly number[]): IdSet {
    const span = this.#words.length * 32;
    const both = new IdSet(this.#first, span);
    both.#addAll(ids.filter((id) => id >= this.#first && id < this.#first + span));
    both.#words.forEach((word, at) => (both.#words[at] = word & (this.#words[at] ?? 0)));
    return both;
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
