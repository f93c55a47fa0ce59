// The IPv6 part of an address table (see address-table.ts): segments by the upper halves of their first addresses, found by interpolation.
//
//   rows     n × 3 words: upper half, more significant word first, and the owner of the one segment that begins there; or 2^31 + where its run is
//   index    k + 1 words: the first row that lies in each bucket or behind it; the last word: n
//   runs     for upper halves within which something begins, as single addresses do: their number, and of each the lower half and the owner
//
// Networks of /64 and larger, which are most of what lists hold, are compared by half an address and have their owner in the same cache line.

import { isPauseDue, type Pause } from "./range-pause.ts";
import type { Segments } from "./range-segments.ts";

export type SixLayout = {
  readonly rows: number;
  readonly buckets: number;
  readonly runWords: number;
};

const rowWords = 3;
const runBit = 0x8000_0000;
/** The number of rows per bucket that is aimed at; a search then takes a step or two. */
const bucketRows = 2;

/** The first segment behind those that begin in the same upper half as `from`. */
function groupEnd({ starts, count }: Segments, from: number): number {
  const [upper0, upper1] = [starts[from * 4], starts[from * 4 + 1]];
  let end = from + 1;
  while (end < count && starts[end * 4 + 1] === upper1 && starts[end * 4] === upper0) end++;
  return end;
}

function isRun({ starts }: Segments, from: number, end: number): boolean {
  return end - from > 1 || starts[from * 4 + 2] !== 0 || starts[from * 4 + 3] !== 0;
}

export function layoutSix(segments: Segments, pause: Pause): SixLayout {
  let rows = 0;
  let runWords = 0;
  for (let from = 0; from < segments.count; rows++) {
    if (isPauseDue(rows)) pause();
    const end = groupEnd(segments, from);
    if (isRun(segments, from, end)) runWords += 1 + rowWords * (end - from);
    from = end;
  }
  return { rows, buckets: Math.max(1, Math.floor(rows / bucketRows)), runWords };
}

function sectionsOf({ rows, buckets, runWords }: SixLayout) {
  const index = rows * rowWords;
  const runs = index + buckets + 1;
  return { index, runs, words: runs + runWords };
}

export function wordsOfSix(layout: SixLayout): number {
  return sectionsOf(layout).words;
}

/** The key by which an address is interpolated: its 53 highest bits, which a float64 holds exactly. */
const keyOf = (word0: number, word1: number): number => word0 * 2 ** 21 + (word1 >>> 11);

function bucketOf(key: number, base: number, scale: number, last: number): number {
  const place = (key - base) * scale;
  return place >= last ? last : place > 0 ? Math.trunc(place) : 0;
}

/** `interpolation` receives two numbers that the look-up needs. */
export function writeSix(
  segments: Segments,
  layout: SixLayout,
  words: Uint32Array,
  interpolation: Float64Array,
  pause: Pause,
): void {
  const { index, runs } = sectionsOf(layout);
  const { starts, owners, count } = segments;
  let run = runs;
  let row = 0;
  for (let from = 0; from < count; row += rowWords) {
    if (isPauseDue(row)) pause();
    const end = groupEnd(segments, from);
    words[row] = starts[from * 4] ?? 0;
    words[row + 1] = starts[from * 4 + 1] ?? 0;
    if (isRun(segments, from, end)) {
      words[row + 2] = runBit | (run - runs);
      words[run++] = end - from;
      for (; from < end; from++) {
        words[run++] = starts[from * 4 + 2] ?? 0;
        words[run++] = starts[from * 4 + 3] ?? 0;
        words[run++] = owners[from] ?? 0;
      }
    } else words[row + 2] = owners[from] ?? 0;
    from = end;
  }
  interpolation.set(indexRows(layout, words, index, pause));
}

function indexRows(
  { rows, buckets }: SixLayout,
  words: Uint32Array,
  index: number,
  pause: Pause,
): [base: number, scale: number] {
  const keyAt = (row: number): number =>
    keyOf(words[row * rowWords] ?? 0, words[row * rowWords + 1] ?? 0);
  // Row 0 always begins at address 0, so interpolation starts at row 1.
  const base = rows > 1 ? keyAt(1) : 0;
  const scale = rows > 1 ? buckets / (keyAt(rows - 1) - base + 1) : 0;
  let filled = 0;
  for (let row = 0; row < rows; row++) {
    if (isPauseDue(row)) pause();
    const bucket = bucketOf(keyAt(row), base, scale, buckets - 1);
    for (; filled <= bucket; filled++) words[index + filled] = row;
  }
  for (; filled <= buckets; filled++) words[index + filled] = rows;
  return [base, scale];
}

export class SixColumns {
  readonly #rows: Uint32Array;
  readonly #index: Uint32Array;
  readonly #runs: Uint32Array;
  readonly #base: number;
  readonly #scale: number;
  readonly #lastBucket: number;

  constructor(layout: SixLayout, words: Uint32Array, [base = 0, scale = 0]: Float64Array) {
    const { index, runs } = sectionsOf(layout);
    this.#rows = words.subarray(0, index);
    this.#index = words.subarray(index, runs);
    this.#runs = words.subarray(runs);
    this.#base = base;
    this.#scale = scale;
    this.#lastBucket = layout.buckets - 1;
  }

  ownerOf(words: Uint32Array): number {
    const rows = this.#rows;
    const word0 = words[0] ?? 0;
    const word1 = words[1] ?? 0;
    const bucket = bucketOf(keyOf(word0, word1), this.#base, this.#scale, this.#lastBucket);
    let low = this.#index[bucket] ?? 0;
    let high = this.#index[bucket + 1] ?? 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const start0 = rows[middle * rowWords] ?? 0;
      const isBehind =
        start0 > word0 || (start0 === word0 && (rows[middle * rowWords + 1] ?? 0) > word1);
      if (isBehind) high = middle;
      else low = middle + 1;
    }
    // Row 0 begins at address 0, so one begins at or before every address.
    const row = (low - 1) * rowWords;
    const said = rows[row + 2] ?? 0;
    return said < runBit ? said : this.#ownerInRun(row, words);
  }

  #ownerInRun(row: number, words: Uint32Array): number {
    if (this.#rows[row] !== words[0] || this.#rows[row + 1] !== words[1])
      return this.#lastOwner(row);
    const runs = this.#runs;
    const word2 = words[2] ?? 0;
    const word3 = words[3] ?? 0;
    const run = (this.#rows[row + 2] ?? 0) - runBit;
    let low = 0;
    let high = runs[run] ?? 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = run + 1 + middle * rowWords;
      const start2 = runs[at] ?? 0;
      if (start2 > word2 || (start2 === word2 && (runs[at + 1] ?? 0) > word3)) high = middle;
      else low = middle + 1;
    }
    return low === 0 ? this.#lastOwner(row - rowWords) : (runs[run + low * rowWords] ?? 0);
  }

  /** Returns the owner of the segment that begins last in a row; that segment reaches to the next row. */
  #lastOwner(row: number): number {
    const said = this.#rows[row + 2] ?? 0;
    if (said < runBit) return said;
    const run = said - runBit;
    return this.#runs[run + (this.#runs[run] ?? 0) * rowWords] ?? 0;
  }
}
