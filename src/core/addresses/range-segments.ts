// Flattens nested ranges into consecutive segments: which range is the most specific one at an address? A
// segment begins where the owner changes, so the segments depend only on who owns each address.

import { sortRanges, type Ranges } from "./range-order.ts";
import { copyColumn, isPauseDue, noPause, type Pause } from "./range-pause.ts";

/** Segment i begins at `starts[i * words]` and ends before the next; segment 0 begins at address 0. Owner 0: nobody's. Neighbours have different owners. */
export type Segments = {
  readonly words: 1 | 4;
  readonly starts: Uint32Array;
  readonly owners: Uint32Array;
  readonly count: number;
};

/** One range of each of the 129 prefix lengths may be open; entry 0 is what lies around them all. */
const depthMax = 130;

/**
 * Flattens ranges of which any two nest or are disjoint. Of equal ranges the one with the lowest owner holds.
 */
export function flattenRanges(ranges: Ranges): Segments {
  return flattenSorted(sortRanges(ranges));
}

export function flattenSorted(ranges: Ranges, pause: Pause = noPause): Segments {
  const writer = new SegmentWriter(ranges.words, 2 * ranges.count + 1, pause);
  new Flattening(writer, ranges).add(0, ranges.count, 0);
  return writer.segments();
}

export class SegmentWriter {
  readonly pause: Pause;
  readonly #words: 1 | 4;
  readonly #starts: Uint32Array;
  readonly #owners: Uint32Array;
  #count = 1;

  constructor(words: 1 | 4, segmentsMax: number, pause: Pause) {
    this.pause = pause;
    this.#words = words;
    this.#starts = new Uint32Array(segmentsMax * words);
    this.#owners = new Uint32Array(segmentsMax);
  }

  /**
   * Begins a segment at the address at `source[at]`, which is not before the last one begun. A segment begun
   * at the same address before does not count.
   */
  begin(source: Uint32Array, at: number, owner: number): void {
    const words = this.#words;
    const starts = this.#starts;
    const last = this.#count - 1;
    let isSame = true;
    for (let word = 0; word < words; word++)
      if (starts[last * words + word] !== source[at + word]) isSame = false;
    if (isSame) {
      if (last > 0 && this.#owners[last - 1] === owner) this.#count = last;
      else this.#owners[last] = owner;
      return;
    }
    if (this.#owners[last] === owner) return;
    for (let word = 0; word < words; word++)
      starts[this.#count * words + word] = source[at + word] ?? 0;
    this.#owners[this.#count++] = owner;
  }

  /**
   * Copies whole segments from `from` to before `to`. The first must not have the owner of the last segment
   * written.
   */
  copy(segments: Segments, from: number, to: number): void {
    const words = this.#words;
    const starts = segments.starts.subarray(from * words, to * words);
    copyColumn(starts, this.#starts, this.#count * words, this.pause);
    copyColumn(segments.owners.subarray(from, to), this.#owners, this.#count, this.pause);
    this.#count += to - from;
  }

  /** Sets the owner of segment 0. */
  first(owner: number): void {
    this.#owners[0] = owner;
  }

  segments(): Segments {
    return {
      words: this.#words,
      starts: this.#starts,
      owners: this.#owners,
      count: this.#count,
    };
  }
}

/** Writes sorted ranges as segments, allocating nothing per range. */
export class Flattening {
  readonly #writer: SegmentWriter;
  readonly #ranges: Ranges;
  /** Last address, prefix and owner of the ranges around the address that has been reached, outermost first. */
  readonly #lasts: Uint32Array;
  readonly #prefixes = new Uint8Array(depthMax);
  readonly #owners = new Uint32Array(depthMax);
  #depth = 0;

  constructor(writer: SegmentWriter, ranges: Ranges) {
    this.#writer = writer;
    this.#ranges = ranges;
    this.#lasts = new Uint32Array(depthMax * ranges.words);
  }

  /**
   * Adds the ranges from `from` to before `to`, which nest in no range before them. Addresses between and
   * after them belong to `around`.
   */
  add(from: number, to: number, around: number): void {
    const { words, firsts, prefixes, owners } = this.#ranges;
    this.#owners[0] = around;
    for (let range = from; range < to; range++) {
      if (isPauseDue(range)) this.#writer.pause();
      const first = range * words;
      this.#closeBefore(first);
      const prefix = prefixes[range] ?? 0;
      // An open range begins at or before this one; of the same length it is the same range.
      if (this.#depth > 0 && this.#prefixes[this.#depth] === prefix) continue;
      const owner = owners[range] ?? 0;
      this.#depth++;
      this.#prefixes[this.#depth] = prefix;
      this.#owners[this.#depth] = owner;
      lastOf(firsts, first, prefix, this.#lasts, this.#depth * words, words);
      this.#writer.begin(firsts, first, owner);
    }
    while (this.#depth > 0) this.#close();
  }

  #closeBefore(first: number): void {
    const { words, firsts } = this.#ranges;
    while (this.#depth > 0) {
      if (compareWords(this.#lasts, this.#depth * words, firsts, first, words) >= 0) return;
      this.#close();
    }
  }

  #close(): void {
    const { words } = this.#ranges;
    const last = this.#depth * words;
    this.#depth--;
    if (increment(this.#lasts, last, words))
      this.#writer.begin(this.#lasts, last, this.#owners[this.#depth] ?? 0);
  }
}

export function compareWords(
  a: Uint32Array,
  aAt: number,
  b: Uint32Array,
  bAt: number,
  words: 1 | 4,
): number {
  for (let word = 0; word < words; word++) {
    const difference = (a[aAt + word] ?? 0) - (b[bAt + word] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Writes the last address of the range that begins at `firsts[at]`. */
export function lastOf(
  firsts: Uint32Array,
  at: number,
  prefix: number,
  to: Uint32Array,
  toAt: number,
  words: 1 | 4,
): void {
  for (let word = 0; word < words; word++) {
    const fixed = Math.min(32, Math.max(0, prefix - 32 * word));
    const free = fixed === 32 ? 0 : 0xffff_ffff >>> fixed;
    to[toAt + word] = (firsts[at + word] ?? 0) | free;
  }
}

/** Adds one to the address. Returns false if it was the very last address. */
export function increment(address: Uint32Array, at: number, words: 1 | 4): boolean {
  for (let word = words - 1; word >= 0; word--) {
    const next = ((address[at + word] ?? 0) + 1) >>> 0;
    address[at + word] = next; // 0: the word before carries.
    if (next !== 0) return true;
  }
  return false;
}
