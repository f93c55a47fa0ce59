// Sorting address ranges by their first address, the outer before the inner: the order in which nesting is flattened in one pass.

import { isPauseDue, noPause, type Pause } from "./range-pause.ts";

/** Columns of one family. Range i begins at `firsts[i * words]`, most significant word first; the arrays may be longer than `count` ranges. */
export type RangeColumns = {
  readonly words: 1 | 4;
  readonly firsts: Uint32Array;
  /** Length of the prefix in bits. */
  readonly prefixes: Uint8Array;
  readonly count: number;
};

/** `owners[i]` is the owner of range i, at least 1. */
export type Ranges = RangeColumns & { readonly owners: Uint32Array };

const digitValues = 65_536;
/** Below this count, comparing is faster than passes over all values of a digit. */
const radixLeast = 8_192;

/** Sorts ranges by first address, then prefix, then owner. */
export function sortRanges(ranges: Ranges, pause: Pause = noPause): Ranges {
  const { words, count } = ranges;
  const order = count < radixLeast ? comparedOrder(ranges) : radixOrder(ranges, pause);
  const firsts = new Uint32Array(count * words);
  const prefixes = new Uint8Array(count);
  const owners = new Uint32Array(count);
  for (let at = 0; at < count; at++) {
    if (isPauseDue(at)) pause();
    const range = order[at] ?? 0;
    for (let word = 0; word < words; word++)
      firsts[at * words + word] = ranges.firsts[range * words + word] ?? 0;
    prefixes[at] = ranges.prefixes[range] ?? 0;
    owners[at] = ranges.owners[range] ?? 0;
  }
  return { words, firsts, prefixes, owners, count };
}

export function compareRanges(a: Ranges, at: number, b: Ranges, bAt: number): number {
  const { words } = a;
  for (let word = 0; word < words; word++) {
    const difference = (a.firsts[at * words + word] ?? 0) - (b.firsts[bAt * words + word] ?? 0);
    if (difference !== 0) return difference;
  }
  return (
    (a.prefixes[at] ?? 0) - (b.prefixes[bAt] ?? 0) || (a.owners[at] ?? 0) - (b.owners[bAt] ?? 0)
  );
}

function comparedOrder(ranges: Ranges): Uint32Array {
  return Uint32Array.from({ length: ranges.count }, (_, range) => range).sort((one, other) =>
    compareRanges(ranges, one, ranges, other),
  );
}

/** Sorts by 16 bits a pass: four or five passes for IPv4, ten or eleven for IPv6. */
function radixOrder({ words, firsts, prefixes, owners, count }: Ranges, pause: Pause): Uint32Array {
  const ends = new Uint32Array(digitValues);
  let order = new Uint32Array(count);
  let sorted = new Uint32Array(count);
  let ownerMost = 0;
  for (let range = 0; range < count; range++) {
    if (isPauseDue(range)) pause();
    order[range] = range;
    ownerMost = Math.max(ownerMost, owners[range] ?? 0);
  }
  const pass = (digitOf: (range: number) => number): void => {
    ends.fill(0);
    for (let range = 0; range < count; range++) {
      if (isPauseDue(range)) pause();
      const digit = digitOf(range);
      ends[digit] = (ends[digit] ?? 0) + 1;
    }
    let before = 0;
    for (let digit = 0; digit < digitValues; digit++) {
      const length = ends[digit] ?? 0;
      ends[digit] = before;
      before += length;
    }
    for (let at = 0; at < count; at++) {
      if (isPauseDue(at)) pause();
      const range = order[at] ?? 0;
      const digit = digitOf(range);
      const to = ends[digit] ?? 0;
      sorted[to] = range;
      ends[digit] = to + 1;
    }
    [order, sorted] = [sorted, order];
  };
  pass((range) => (owners[range] ?? 0) & 0xffff);
  if (ownerMost >= digitValues) pass((range) => (owners[range] ?? 0) >>> 16);
  pass((range) => prefixes[range] ?? 0);
  for (let word = words - 1; word >= 0; word--) {
    pass((range) => (firsts[range * words + word] ?? 0) & 0xffff);
    pass((range) => (firsts[range * words + word] ?? 0) >>> 16);
  }
  return order;
}
