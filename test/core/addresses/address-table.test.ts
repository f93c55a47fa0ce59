// The flat table against a brute-force oracle: the most specific range that holds an address names its owner.

import fc from "fast-check";
import { expect, test } from "vitest";
import { AddressReader } from "../../../src/core/addresses/address-reader.ts";
import { AddressTable, AddressTablePlan } from "../../../src/core/addresses/address-table.ts";
import { familyBits, formatIp, type IpFamily } from "../../../src/core/addresses/ip.ts";
import { flattenRanges, type Segments } from "../../../src/core/addresses/range-segments.ts";

type Range = { family: IpFamily; first: bigint; prefix: number; owner: number };

// Ascending by their UTF-8 bytes.
const names = ["Applebot", "badbot", "zgrab", "Ünbot"];
const reader = new AddressReader();

/** Crowded into a small space at the ends and in the middle of the address space, so that ranges nest, touch and repeat; wide ones included. */
const range: fc.Arbitrary<Range> = fc
  .record({
    family: fc.constantFrom<IpFamily>(4, 6),
    host: fc.bigInt({ min: 0n, max: 63n }),
    size: fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constantFrom(8, 20, 31, 32)),
    place: fc.constantFrom("low", "middle", "high"),
    owner: fc.integer({ min: 1, max: names.length }),
  })
  .map(({ family, host, size, place, owner }) => {
    const bits = familyBits[family];
    const end = 1n << BigInt(bits);
    const from = { low: 0n, middle: end / 2n - 32n, high: end - 64n }[place];
    const mask = (1n << BigInt(size)) - 1n;
    return { family, first: (from + host) & (end - 1n) & ~mask, prefix: bits - size, owner };
  });

function segmentsOf(ranges: readonly Range[], family: IpFamily): Segments {
  const own = ranges.filter((one) => one.family === family);
  const words = family === 4 ? 1 : 4;
  const firsts = Uint32Array.from(
    own.flatMap(({ first }) =>
      Array.from({ length: words }, (_, word) =>
        Number((first >> BigInt(32 * (words - 1 - word))) & 0xffff_ffffn),
      ),
    ),
  );
  const prefixes = Uint8Array.from(own.map(({ prefix }) => prefix));
  const owners = Uint32Array.from(own.map(({ owner }) => owner));
  return flattenRanges({ words, firsts, prefixes, owners, count: own.length });
}

function build(
  ranges: readonly Range[],
  { at = 0, packedLeast }: { readonly at?: number; readonly packedLeast?: number } = {},
): AddressTable {
  const v4 = segmentsOf(ranges, 4);
  const v6 = segmentsOf(ranges, 6);
  const plan = new AddressTablePlan({ v4, v6, names }, { packedLeast });
  // What was there before must not matter.
  const buffer = new SharedArrayBuffer(at + plan.bytes);
  new Uint8Array(buffer).fill(0xa5);
  plan.write({ buffer, at });
  return new AddressTable({ buffer, at });
}

/** Small tables, and as large ones are laid out. */
const layouts = [{}, { packedLeast: 0 }];

function bruteForce(ranges: readonly Range[], family: IpFamily, value: bigint): number {
  let found: Range | undefined;
  for (const one of ranges) {
    const last = one.first + (1n << BigInt(familyBits[family] - one.prefix)) - 1n;
    if (one.family !== family || value < one.first || value > last) continue;
    if (found === undefined || one.prefix > found.prefix) found = one;
    if (one.prefix === found.prefix && one.owner < found.owner) found = one;
  }
  return found?.owner ?? 0;
}

function ownerAt(table: AddressTable, family: IpFamily, value: bigint): number {
  // A mapped address would be read as IPv4: written in hex it still is one, so those few are left out by the caller.
  expect(reader.read(formatIp({ family, value }))).toBe(family);
  return table.ownerOf(family, reader.words);
}

test.each(layouts)(
  "every address near the ranges has the owner of its most specific range: %o",
  (layout) => {
    fc.assert(
      fc.property(fc.array(range, { maxLength: 40 }), (ranges) => {
        const table = build(ranges, { at: 64, ...layout });
        for (const family of [4, 6] as const) {
          const end = 1n << BigInt(familyBits[family]);
          for (const from of [0n, end / 2n - 40n, end - 72n])
            for (let value = from; value < from + 72n; value += 1n)
              expect(ownerAt(table, family, value)).toBe(bruteForce(ranges, family, value));
        }
      }),
      { numRuns: 150 },
    );
  },
);

test.each(layouts)(
  "a table of many ranges: every beginning, every end, and the addresses beside them: %o",
  (layout) => {
    const random = fc.sample(
      fc.record({
        family: fc.constantFrom<IpFamily>(4, 6),
        value: fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }),
        size: fc.integer({ min: 0, max: 20 }),
        owner: fc.integer({ min: 1, max: names.length }),
      }),
      { numRuns: 1_200, seed: 7 },
    );
    const ranges = random.map(({ family, value, size, owner }): Range => {
      const bits = familyBits[family];
      const mask = (1n << BigInt(size)) - 1n;
      return { family, first: (value >> BigInt(128 - bits)) & ~mask, prefix: bits - size, owner };
    });
    const table = build(ranges, layout);
    for (const { family, first, prefix } of ranges) {
      const last = first + (1n << BigInt(familyBits[family] - prefix)) - 1n;
      // And far behind it in IPv6, where the next upper half begins.
      const far = last + (1n << 64n);
      for (const value of [first - 1n, first, last, last + 1n, far])
        if (value >= 0n && value >> BigInt(familyBits[family]) === 0n)
          expect(ownerAt(table, family, value)).toBe(bruteForce(ranges, family, value));
    }
  },
);

test("more bots than two bytes can tell apart", () => {
  const many = Array.from({ length: 66_000 }, (_, i) => `bot-${String(i).padStart(5, "0")}`);
  const one = (owner: number): Range => ({ family: 4, first: BigInt(owner), prefix: 32, owner });
  const ranges = [1, 2, 65_535, 65_536, 66_000].map(one);
  const [v4, v6] = [segmentsOf(ranges, 4), segmentsOf(ranges, 6)];
  const plan = new AddressTablePlan({ v4, v6, names: many }, { packedLeast: 0 });
  const ref = { buffer: new SharedArrayBuffer(plan.bytes), at: 0 };
  plan.write(ref);
  const table = new AddressTable(ref);
  for (const { first, owner } of ranges) expect(ownerAt(table, 4, first)).toBe(owner);
  expect(ownerAt(table, 4, 3n)).toBe(0);
  expect(table.name(66_000)).toBe("bot-65999");
});

test("names come back as they were, and whether a bot holds addresses is known", () => {
  const table = build([{ family: 4, first: 0n, prefix: 0, owner: 3 }]);
  expect(names.map((_, i) => table.name(i + 1))).toEqual(names);
  expect(names.map((name) => table.ownerNamed(name))).toEqual(names.map((_, i) => i + 1));
  for (const other of ["", "A", "Applebot ", "applebot", "zzz"])
    expect(table.ownerNamed(other)).toBe(0);
});

test.each(layouts)("the empty table and the whole address space: %o", (layout) => {
  const empty = build([], layout);
  const whole = build(
    [
      { family: 4, first: 0n, prefix: 0, owner: 1 },
      { family: 6, first: 0n, prefix: 0, owner: 2 },
    ],
    layout,
  );
  for (const family of [4, 6] as const)
    for (const value of [0n, 1n << 31n, (1n << BigInt(familyBits[family])) - 1n]) {
      expect(ownerAt(empty, family, value)).toBe(0);
      expect(ownerAt(whole, family, value)).toBe(family === 4 ? 1 : 2);
    }
});
