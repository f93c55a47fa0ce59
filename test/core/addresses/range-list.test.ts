// Lists of ranges: comments, blanks, pieces cut anywhere; faults with their line; and buckets that put them in order.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { formatIp, formatRange, parseIp, parseRange } from "../../../src/core/addresses/ip.ts";
import { RangeBuckets } from "../../../src/core/addresses/range-buckets.ts";
import {
  RangeListReader,
  RangeReader,
  type ListPart,
} from "../../../src/core/addresses/range-list.ts";

const text = [
  "# a list",
  "192.0.2.1",
  "",
  "  198.51.100.0/24   # office\r",
  "2001:DB8::/32 ; six",
  "nonsense",
  "192.0.2.1/24",
  "::ffff:192.0.2.3",
  "192.0.2.9/32",
  "010.0.0.1",
].join("\n");

function readIn(pieces: readonly string[]): ListPart {
  const reader = new RangeListReader();
  const parts = [...pieces.map((piece) => reader.read(piece)), reader.end()];
  return {
    ranges: parts.flatMap(({ ranges }) => ranges),
    faults: parts.flatMap(({ faults }) => faults),
  };
}

test("property: wherever the text is cut, the same ranges and the same faults by line", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(text.length), { maxLength: 8 }), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), text.length];
      const { ranges, faults } = readIn(at.slice(1).map((end, i) => text.slice(at[i], end)));
      expect(ranges.map((one) => one.text)).toEqual([
        "192.0.2.1",
        "198.51.100.0/24",
        "2001:db8::/32",
        "192.0.2.3",
        "192.0.2.9",
      ]);
      expect(faults.map(({ line }) => line)).toEqual([6, 7, 10]);
    }),
  );
});

test("a line without an end is a fault, not a heap", () => {
  const { ranges, faults } = readIn(Array.from({ length: 100 }, () => "x".repeat(10_000)));
  expect(ranges).toEqual([]);
  expect(faults).toMatchObject([{ line: 1, reason: expect.stringContaining("longer") as unknown }]);
});

const rangeText = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.tuple(fc.ipV4(), fc.nat(40)).map(([ip, prefix]) => `${ip}/${prefix}`),
  fc.tuple(fc.nat(255), fc.nat(32)).map(([a, prefix]) => `${a}.0.0.0/${prefix}`),
  fc.constantFrom("", "/", "1.2.3.4/", "1.2.3.4/x", "1.2.3/8", "::ffff:1.2.3.4/120", "1.2.3.4/032"),
);

test("property: one range is read as parseRange reads it", () => {
  const reader = new RangeReader();
  fc.assert(
    fc.property(rangeText, (one) => {
      const parsed = parseRange(one);
      const read = reader.read(one);
      if (parsed.ok) expect(read).toEqual({ text: formatRange(parsed.range), range: parsed.range });
      else expect(typeof read).toBe("string");
    }),
    { numRuns: 500 },
  );
});

test("property: buckets give all back as they were, in order, in parts of at most so many", () => {
  const reader = new RangeReader();
  const network = (ip: string, prefix: number): string => {
    const parsed = parseIp(ip);
    if (parsed === undefined) return ip;
    const host = BigInt((parsed.family === 4 ? 32 : 128) - prefix);
    return `${formatIp({ ...parsed, value: (parsed.value >> host) << host })}/${prefix}`;
  };
  const four = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }));
  const six = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 }));
  const texts = fc.oneof(four, six).map(([ip, prefix]) => network(ip, prefix));
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), texts)),
      fc.integer({ min: 1, max: 9 }),
      (ips, most) => {
        const buckets = new RangeBuckets();
        const listed = ips.map((ip) => reader.read(ip)).filter((one) => typeof one !== "string");
        for (const one of listed) buckets.add(one);
        expect(buckets.bytes > 0).toBe(listed.length > 0);
        const parts = [...buckets.take(most)];
        expect(parts.every((part) => part.length <= most && part.length > 0)).toBe(true);
        const order = ({ range }: (typeof listed)[number]): bigint =>
          range.first + (range.family === 6 ? 1n << 200n : 0n);
        expect(parts.flat().map(order)).toEqual(
          listed.map(order).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
        );
        const byText = (all: typeof listed) =>
          all.toSorted((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
        expect(byText(parts.flat())).toEqual(byText(listed));
        expect(buckets.bytes).toBe(0);
      },
    ),
  );
});
