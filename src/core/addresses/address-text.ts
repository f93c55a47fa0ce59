// Writes an address given as words (see address-reader.ts) as its one canonical text: a dotted quad, or RFC
// 5952.

import type { IpFamily } from "./ip.ts";

export function addressText(family: IpFamily, words: Uint32Array): string {
  const [first = 0] = words;
  if (family === 4)
    return `${first >>> 24}.${(first >>> 16) & 255}.${(first >>> 8) & 255}.${first & 255}`;
  const groups = Array.from(words.subarray(0, 4)).flatMap((word) => [word >>> 16, word & 0xffff]);
  const gap = longestGap(groups);
  const hex = (from: number, to: number): string =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(":");
  return gap === undefined ? hex(0, 8) : `${hex(0, gap.from)}::${hex(gap.to, 8)}`;
}

/** Finds the longest run of at least two zero groups, the first of equally long ones (RFC 5952 §4.2). */
function longestGap(groups: readonly number[]): { from: number; to: number } | undefined {
  let longest = { from: 0, to: 1 };
  let from = 0;
  groups.forEach((group, at) => {
    if (group !== 0) from = at + 1;
    else if (at + 1 - from > longest.to - longest.from) longest = { from, to: at + 1 };
  });
  return longest.to - longest.from < 2 ? undefined : longest;
}
