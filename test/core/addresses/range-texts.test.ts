// Range texts in order of address: as numbers, not as texts.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  cidrCover,
  formatRange,
  parseRange,
  type IpRange,
} from "../../../src/core/addresses/ip.ts";
import { sortedRangeTexts } from "../../../src/core/addresses/range-texts.ts";

test("addresses are in order as numbers, the outer range before the inner, IPv4 before IPv6", () => {
  const inOrder = [
    "9.0.0.0",
    "10.0.0.0/8",
    "10.0.0.0",
    "10.0.0.9",
    "10.0.0.10",
    "::/0",
    "::9",
    "2001:db8::/32",
  ];
  expect(sortedRangeTexts(inOrder.toSorted())).toEqual(inOrder);
  expect(sortedRangeTexts([])).toEqual([]);
});

const range = fc
  .record({
    family: fc.constantFrom(4 as const, 6 as const),
    at: fc.bigInt(0n, 300n),
    span: fc.bigInt(0n, 40n),
  })
  .map(({ family, at, span }): IpRange => ({ family, first: at, last: at + span }));

test("as a sort by numbers says", () => {
  fc.assert(
    fc.property(fc.array(range), (wholes) => {
      const texts = [...new Set(wholes.flatMap((one) => cidrCover(one).map(formatRange)))];
      const numbers = (text: string): readonly [number, bigint, bigint] => {
        const parsed = parseRange(text);
        if (!parsed.ok) throw new Error(parsed.reason);
        return [parsed.range.family, parsed.range.first, -parsed.range.last];
      };
      const compare = (a: string, b: string): number => {
        const [x, y] = [numbers(a), numbers(b)];
        const at = x.findIndex((value, i) => value !== y[i]);
        return at < 0 ? 0 : (x[at] ?? 0) < (y[at] ?? 0) ? -1 : 1;
      };
      expect(sortedRangeTexts(texts)).toEqual(texts.toSorted(compare));
    }),
  );
});
