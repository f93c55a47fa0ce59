// Ranges of many lengths, and addresses to ask for: half of them in a range, half anywhere. The same for the same seed.

import type { IpFamily } from "../../src/core/addresses/ip.ts";
import type { SetElement } from "../../src/core/addresses/set-digest.ts";

/** mulberry32: 32 bits a call. */
function randomWords(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

const namesMost = 500;
/** IPv4 from /24 to single addresses, IPv6 from /48 to /64: what lists hold. */
export const listed = { 4: { from: 24, to: 32 }, 6: { from: 48, to: 64 } } as const;

const quad = (word: number): string =>
  `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`;
/** The upper half of an address in 2000::/3. */
const half = (word0: number, word1: number): string =>
  [0x2000 | (word0 >>> 19), word0 & 0xffff, word1 >>> 16, word1 & 0xffff]
    .map((group) => group.toString(16))
    .join(":");
const cut = (word: number, bits: number): number =>
  bits <= 0 ? 0 : (word & (0xffff_ffff << (32 - bits))) >>> 0;

export function randomRanges(
  family: IpFamily,
  count: number,
  seed: number,
  { from, to }: { readonly from: number; readonly to: number } = listed[family],
): readonly SetElement[] {
  const next = randomWords(seed);
  const ranges = new Set<string>();
  while (ranges.size < count) {
    const prefix = from + (next() % (to - from + 1));
    const [word0, word1] = [next(), next()];
    if (family === 4) ranges.add(`${quad(cut(word0, prefix))}${prefix === 32 ? "" : `/${prefix}`}`);
    else ranges.add(`${half(word0, cut(word1, prefix - 32))}::/${prefix}`);
  }
  return Array.from(ranges, (range, i) => ({ bot: `bot-${i % namesMost}`, range }));
}

export function randomAddresses(
  family: IpFamily,
  ranges: readonly SetElement[],
  count: number,
  seed: number,
): readonly string[] {
  const next = randomWords(seed);
  return Array.from({ length: count }, (_, i) => {
    const anywhere = family === 4 ? quad(next()) : `${half(next(), next())}:1:2:3:4`;
    if (i % 2 === 1) return anywhere;
    const range = ranges[next() % ranges.length]?.range ?? "";
    return family === 4
      ? range.replace(/\/.*/, "")
      : range.replace(/::\/.*/, `::${(next() & 0xffff).toString(16)}`);
  });
}
