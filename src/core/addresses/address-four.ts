// The IPv4 part of an address table (see address-table.ts): segments by their first address, found through an index of the highest bits.
//
//   keys     n words, one a segment, ascending within a bucket
//   owners   n of 2 or 4 bytes, padded; none where a key holds its owner
//   index    2^bits + 1 words: the first segment that begins in each bucket or behind it; the last word: n
//
// From 2^16 segments on a key is the lower half of the first address and the owner: the bucket says the upper half, and a look-up touches memory twice, in the
// index and in the keys. Smaller tables, and those of more owners, have the whole first address as key.

import { copyColumn, isPauseDue, type Pause } from "./range-pause.ts";
import type { Segments } from "./range-segments.ts";

export type FourLayout = {
  readonly count: number;
  readonly bits: number;
  /** 0: keys hold the owners. */
  readonly ownerBytes: 0 | 2 | 4;
};

/** The number of segments per bucket that is aimed at; a search then takes a step or two. */
const bucketSegments = 4;
/** The most index bits; the index then takes 4 MiB. */
const bitsMax = 20;
const halfBits = 16;
const halfMask = 0xffff;
export const packedSegmentsLeast = 2 ** halfBits;

export function layoutFour({ count }: Segments, names: number, packedLeast: number): FourLayout {
  const ownerBytes = names > halfMask ? 4 : count < packedLeast ? 2 : 0;
  const bits = Math.floor(Math.log2(count / bucketSegments));
  // At least one bit: JavaScript shifts by 32 as if by 0.
  const bitsLeast = ownerBytes === 0 ? halfBits : 1;
  return { count, bits: Math.min(bitsMax, Math.max(bitsLeast, bits)), ownerBytes };
}

function sectionsOf({ count, bits, ownerBytes }: FourLayout) {
  const owners = count;
  const index = owners + Math.ceil((count * ownerBytes) / 4);
  return { owners, index, words: index + 2 ** bits + 1 };
}

export function wordsOfFour(layout: FourLayout): number {
  return sectionsOf(layout).words;
}

function ownersIn(words: Uint32Array, { count, ownerBytes }: FourLayout) {
  const at = words.byteOffset + count * 4;
  return ownerBytes === 4
    ? new Uint32Array(words.buffer, at, count)
    : new Uint16Array(words.buffer, at, ownerBytes === 0 ? 0 : count);
}

export function writeFour(
  segments: Segments,
  layout: FourLayout,
  words: Uint32Array,
  pause: Pause,
): void {
  const { count, bits, ownerBytes } = layout;
  const { starts, owners } = segments;
  if (ownerBytes !== 0) {
    copyColumn(starts.subarray(0, count), words, 0, pause);
    ownersIn(words, layout).set(owners.subarray(0, count));
  }
  const { index } = sectionsOf(layout);
  const shift = 32 - bits;
  let filled = 0;
  for (let segment = 0; segment < count; segment++) {
    if (isPauseDue(segment)) pause();
    const start = starts[segment] ?? 0;
    if (ownerBytes === 0) words[segment] = (start << halfBits) | (owners[segment] ?? 0);
    const bucket = start >>> shift;
    for (; filled <= bucket; filled++) words[index + filled] = segment;
  }
  words.fill(count, index + filled);
}

export class FourColumns {
  readonly #keys: Uint32Array;
  readonly #owners: Uint16Array | Uint32Array;
  readonly #isPacked: boolean;
  readonly #index: Uint32Array;
  readonly #shift: number;

  constructor(layout: FourLayout, words: Uint32Array) {
    const { count, bits, ownerBytes } = layout;
    this.#keys = words.subarray(0, count);
    this.#owners = ownersIn(words, layout);
    this.#isPacked = ownerBytes === 0;
    this.#index = words.subarray(sectionsOf(layout).index);
    this.#shift = 32 - bits;
  }

  ownerOf(words: Uint32Array): number {
    const keys = this.#keys;
    const address = words[0] ?? 0;
    const key = this.#isPacked ? ((address << halfBits) | halfMask) >>> 0 : address;
    const bucket = address >>> this.#shift;
    let low = this.#index[bucket] ?? 0;
    let high = this.#index[bucket + 1] ?? 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((keys[middle] ?? 0) <= key) low = middle + 1;
      else high = middle;
    }
    // Segment 0 begins at address 0, so one begins at or before every address.
    const segment = low - 1;
    return this.#isPacked ? (keys[segment] ?? 0) & halfMask : (this.#owners[segment] ?? 0);
  }
}
