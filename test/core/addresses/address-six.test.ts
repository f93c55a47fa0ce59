// The IPv6 columns alone: what lies in one upper half, what spans several, and the addresses beside every border.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  layoutSix,
  SixColumns,
  wordsOfSix,
  writeSix,
} from "../../../src/core/addresses/address-six.ts";
import { noPause } from "../../../src/core/addresses/range-pause.ts";
import { flattenRanges, type Segments } from "../../../src/core/addresses/range-segments.ts";

type Range = readonly [first: bigint, prefix: number, owner: number];

const wordsOf = (address: bigint): Uint32Array =>
  Uint32Array.from([96n, 64n, 32n, 0n], (shift) => Number((address >> shift) & 0xffff_ffffn));

function segmentsOf(ranges: readonly Range[]): Segments {
  return flattenRanges({
    words: 4,
    firsts: Uint32Array.from(ranges.flatMap(([first]) => [...wordsOf(first)])),
    prefixes: Uint8Array.from(ranges.map(([, prefix]) => prefix)),
    owners: Uint32Array.from(ranges.map(([, , owner]) => owner)),
    count: ranges.length,
  });
}

function build(segments: Segments): SixColumns {
  const layout = layoutSix(segments, noPause);
  // What was there before must not matter.
  const words = new Uint32Array(wordsOfSix(layout)).fill(0xa5a5_a5a5);
  const interpolation = new Float64Array(2).fill(NaN);
  writeSix(segments, layout, words, interpolation, noPause);
  return new SixColumns(layout, words, interpolation);
}

const end = 1n << 128n;
const site = 0x2001_0db8n << 96n;
const half = 1n << 64n;

test.each<[string, readonly Range[]]>([
  ["nothing", []],
  ["everything", [[0n, 0, 1]]],
  ["the first address", [[0n, 128, 1]]],
  ["the last address", [[end - 1n, 128, 1]]],
  ["a network", [[site, 64, 1]]],
  ["networks side by side", [0n, 1n, 2n].map((at) => [site + at * half, 64, 1 + Number(at)])],
  ["single addresses of one network", [1n, 2n, 9n].map((at) => [site + at, 128, 1 + Number(at)])],
  [
    "an address within a network, with another one behind it",
    [
      [site, 48, 1],
      [site + 7n, 128, 2],
      [site + 3n * half, 64, 3],
    ],
  ],
  ["addresses far apart", [3n, end / 3n, end / 2n, end - 9n].map((at) => [at, 128, 1])],
])("%s: the owner changes at the borders and nowhere else", (_name, ranges) => {
  const segments = segmentsOf(ranges);
  const columns = build(segments);
  const starts = Array.from({ length: segments.count }, (_, at) =>
    segments.starts
      .subarray(4 * at, 4 * at + 4)
      .reduce((sum, word) => (sum << 32n) | BigInt(word), 0n),
  );
  for (const [at, start] of starts.entries()) {
    const last = (starts[at + 1] ?? end) - 1n;
    const owner = segments.owners[at];
    expect(owner).toBe(ownerOf(ranges, start));
    for (const address of [start, start + half, last - half, last])
      if (address >= start && address <= last)
        expect(columns.ownerOf(wordsOf(address)), address.toString(16)).toBe(owner);
  }
});

test("whatever the ranges, each address near them has the owner of the most specific one", () => {
  const range = fc
    .record({
      upper: fc.constantFrom(0n, 1n, site >> 64n, (site >> 64n) + 1n, half - 1n),
      lower: fc.constantFrom(0n, 1n, 2n, half - 1n),
      prefix: fc.constantFrom(0, 1, 48, 63, 64, 65, 127, 128),
      owner: fc.integer({ min: 1, max: 9 }),
    })
    .map(({ upper, lower, prefix, owner }): Range => {
      const address = (upper << 64n) | lower;
      return [address - (address % (1n << BigInt(128 - prefix))), prefix, owner];
    });
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), (ranges) => {
      const columns = build(segmentsOf(ranges));
      for (const [first, prefix] of ranges) {
        const last = first + (1n << BigInt(128 - prefix)) - 1n;
        for (const address of [first - 1n, first, first + 1n, last, last + 1n])
          if (address >= 0n && address < end)
            expect(columns.ownerOf(wordsOf(address))).toBe(ownerOf(ranges, address));
      }
    }),
    { numRuns: 100 },
  );
});

/** Of equal ranges the one with the lowest owner; 0 is nobody. */
function ownerOf(ranges: readonly Range[], address: bigint): number {
  const holding = ranges
    .filter(([first, prefix]) => address >> BigInt(128 - prefix) === first >> BigInt(128 - prefix))
    .toSorted(([, a, one], [, b, other]) => b - a || one - other);
  return holding[0]?.[2] ?? 0;
}
