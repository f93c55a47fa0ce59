// The compiled set against a brute-force oracle: the most specific range that holds an address names its bot.

import fc from "fast-check";
import { expect, test } from "vitest";
import { familyBits, formatRange, parseRange, type IpFamily } from "../../src/core/ip.ts";
import { buildRangeTable, lookupRange } from "../../src/core/range-table.ts";
import type { SetElement } from "../../src/core/set-digest.ts";

/** CIDR ranges crowded into a small space, so that they nest, touch and repeat; the ends of the address space included. */
const cidr = fc
  .record({
    family: fc.constantFrom<IpFamily>(4, 6),
    host: fc.integer({ min: 0, max: 63 }),
    size: fc.integer({ min: 0, max: 6 }),
    high: fc.boolean(),
  })
  .map(({ family, host, size, high }) => {
    const most = (1n << BigInt(familyBits[family])) - 1n;
    const mask = (1n << BigInt(size)) - 1n;
    const first = (high ? most - 63n + BigInt(host) : BigInt(host)) & ~mask & most;
    return { family, first, last: first + mask };
  });
const set = fc.array(
  fc.record({ bot: fc.constantFrom("a", "b", "c", "d"), range: cidr.map(formatRange) }),
  { maxLength: 30 },
);

function bruteForce(
  elements: readonly SetElement[],
  family: IpFamily,
  value: bigint,
): { size: bigint; bots: ReadonlySet<string> } {
  let size = 1n << 200n;
  let bots = new Set<string>();
  for (const { bot, range } of elements) {
    const parsed = parseRange(range);
    if (
      !parsed.ok ||
      parsed.range.family !== family ||
      value < parsed.range.first ||
      value > parsed.range.last
    )
      continue;
    const own = parsed.range.last - parsed.range.first;
    if (own < size) [size, bots] = [own, new Set([bot])];
    else if (own === size) bots.add(bot);
  }
  return { size, bots };
}

test("every address near the ranges gets the bot of its most specific range", () => {
  fc.assert(
    fc.property(set, (elements) => {
      const table = buildRangeTable(elements);
      for (const family of [4, 6] as const) {
        const most = (1n << BigInt(familyBits[family])) - 1n;
        for (let i = 0n; i <= 66n; i++) {
          for (const value of [i, most - i]) {
            const { bots } = bruteForce(elements, family, value);
            const found = lookupRange(table, { family, value });
            if (bots.size === 0) expect(found).toBeUndefined();
            else expect([...bots]).toContain(found);
          }
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("the empty set and the whole range", () => {
  expect(lookupRange(buildRangeTable([]), { family: 4, value: 1n })).toBeUndefined();
  const all = buildRangeTable([
    { bot: "all", range: "0.0.0.0/0" },
    { bot: "six", range: "::/0" },
    { bot: "one", range: "255.255.255.255" },
  ]);
  expect(lookupRange(all, { family: 4, value: 0n })).toBe("all");
  expect(lookupRange(all, { family: 4, value: 0xffff_ffffn })).toBe("one");
  expect(lookupRange(all, { family: 6, value: (1n << 128n) - 1n })).toBe("six");
});

test("an element that is no range is refused", () => {
  expect(() => buildRangeTable([{ bot: "x", range: "10.0.0.1/8" }])).toThrow("10.0.0.0/8");
});
