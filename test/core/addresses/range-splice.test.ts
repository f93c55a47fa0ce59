// Splicing a change into a set gives what flattening the changed set anew gives, to the last word: nested, adjacent, equal, both ends of the address space.

import fc from "fast-check";
import { expect, test } from "vitest";
import { familyBits, formatRange, type IpFamily } from "../../../src/core/addresses/ip.ts";
import { sortRanges, type Ranges } from "../../../src/core/addresses/range-order.ts";
import { flattenRanges, type Segments } from "../../../src/core/addresses/range-segments.ts";
import {
  buildAddressTable,
  changeRangeSet,
  RangeSetBuilder,
  type RangeSet,
} from "../../../src/core/addresses/range-set.ts";
import { changeRanges, spliceSegments } from "../../../src/core/addresses/range-splice.ts";
import { elementKey, type SetElement } from "../../../src/core/addresses/set-digest.ts";

type Range = { readonly first: bigint; readonly size: number; readonly owner: number };

/** 64 addresses at each end and in the middle of the space, and wide ranges around them. */
const range = (family: IpFamily): fc.Arbitrary<Range> =>
  fc
    .record({
      host: fc.bigInt({ min: 0n, max: 63n }),
      size: fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: 6 }) },
        { weight: 1, arbitrary: fc.constantFrom(8, 20, 31, familyBits[family]) },
      ),
      place: fc.constantFrom("low", "middle", "high"),
      owner: fc.integer({ min: 1, max: 3 }),
    })
    .map(({ host, size, place, owner }) => {
      const end = 1n << BigInt(familyBits[family]);
      const from = { low: 0n, middle: end / 2n - 32n, high: end - 64n }[place];
      const mask = (1n << BigInt(size)) - 1n;
      return { first: (from + host) & (end - 1n) & ~mask, size, owner };
    });

const keyOf = ({ first, size, owner }: Range): string => `${first}/${size} ${owner}`;
const distinct = (ranges: readonly Range[]): readonly Range[] => [
  ...new Map(ranges.map((one) => [keyOf(one), one])).values(),
];

function columnsOf(ranges: readonly Range[], family: IpFamily): Ranges {
  const words = family === 4 ? 1 : 4;
  return {
    words,
    firsts: Uint32Array.from(
      ranges.flatMap(({ first }) =>
        Array.from({ length: words }, (_, word) =>
          Number((first >> BigInt(32 * (words - 1 - word))) & 0xffff_ffffn),
        ),
      ),
    ),
    prefixes: Uint8Array.from(ranges.map(({ size }) => familyBits[family] - size)),
    owners: Uint32Array.from(ranges.map(({ owner }) => owner)),
    count: ranges.length,
  };
}

// As text: comparing long arrays element by element takes most of a run.
const shown = ({ words, starts, owners, count }: Segments): string =>
  `starts ${starts.subarray(0, count * words).join()} owners ${owners.subarray(0, count).join()}`;
const shownRanges = ({ words, firsts, prefixes, owners, count }: Ranges): string =>
  `firsts ${firsts.subarray(0, count * words).join()} prefixes ${prefixes.subarray(0, count).join()} owners ${owners.subarray(0, count).join()}`;

test.each([4, 6] as const)("IPv%i: splice(flatten(A), delta) is flatten(A ± delta)", (family) => {
  const list = (maxLength: number): fc.Arbitrary<readonly Range[]> =>
    fc.array(range(family), { maxLength }).map(distinct);
  fc.assert(
    fc.property(list(40), list(8), fc.infiniteStream(fc.boolean()), (ranges, more, picks) => {
      const isLost = new Map(ranges.map((one) => [keyOf(one), picks.next().value === true]));
      const removed = ranges.filter((one) => isLost.get(keyOf(one)) === true).slice(0, 8);
      const added = more.filter((one) => !isLost.has(keyOf(one)));
      const lost = new Set(removed.map(keyOf));
      const after = [...ranges.filter((one) => !lost.has(keyOf(one))), ...added];
      const [plus, minus] = [added, removed].map((some) => sortRanges(columnsOf(some, family)));
      if (plus === undefined || minus === undefined) throw new Error("unreachable");
      const before = sortRanges(columnsOf(ranges, family));
      const changed = changeRanges(before, plus, minus);
      if (changed === undefined) throw new Error("the change does not fit");
      const anew = columnsOf(after, family);
      expect(shownRanges(changed)).toEqual(shownRanges(sortRanges(anew)));
      const spliced = spliceSegments(flattenRanges(before), changed, [plus, minus]);
      expect(shown(spliced)).toEqual(shown(flattenRanges(anew)));
    }),
    { numRuns: 250 },
  );
});

test.each([4, 6] as const)("IPv%i: many ranges sort as few do", (family) => {
  const some = fc.sample(range(family), { numRuns: 400, seed: 9 });
  const few = sortRanges(columnsOf(some, family));
  const many = Array.from({ length: 30 }, () => some).flat();
  const sorted = sortRanges(columnsOf(many, family));
  const thirtieth = (values: Uint32Array | Uint8Array): number[] =>
    Array.from(values).filter((_, at) => at % 30 === 0);
  expect(thirtieth(sorted.prefixes)).toEqual(Array.from(few.prefixes));
  expect(thirtieth(sorted.owners)).toEqual(Array.from(few.owners));
  for (let word = 0; word < few.words; word++) {
    const column = ({ firsts, words }: Ranges): Uint32Array =>
      firsts.filter((_, at) => at % words === word);
    expect(thirtieth(column(sorted))).toEqual(Array.from(column(few)));
  }
});

test("a change that does not fit is noticed", () => {
  const of = (...ranges: Range[]): Ranges => sortRanges(columnsOf(ranges, 4));
  const one = { first: 8n, size: 3, owner: 1 };
  const other = { first: 16n, size: 0, owner: 2 };
  expect(changeRanges(of(one), of(one), of())).toBeUndefined();
  expect(changeRanges(of(one), of(), of(other))).toBeUndefined();
  expect(changeRanges(of(), of(), of(one))).toBeUndefined();
  expect(changeRanges(of(one), of({ ...one, owner: 2 }), of())?.count).toBe(2);
  expect(changeRanges(of(one), of(other), of(one))?.count).toBe(1);
});

// Ascending by UTF-8 bytes, which is not the order of UTF-16 units.
const bots = ["a", "b", "z", "￿", "😀"];
const element = fc.record({
  bot: fc.constantFrom(...bots),
  range: fc.oneof(
    range(4).map(({ first, size }) =>
      formatRange({ family: 4, first, last: first + (1n << BigInt(size)) - 1n }),
    ),
    range(6).map(({ first, size }) =>
      formatRange({ family: 6, first, last: first + (1n << BigInt(size)) - 1n }),
    ),
  ),
});

function setOf(elements: Iterable<SetElement>): RangeSet {
  const builder = new RangeSetBuilder();
  for (const { bot, range: text } of elements) builder.add(bot, text);
  return builder.build();
}

const shownSet = ({ names, counts, v4, v6 }: RangeSet): string =>
  [
    `names ${names.join()} counts ${counts.join()}`,
    ...[v4, v6].flatMap(({ ranges, segments }) => [shownRanges(ranges), shown(segments)]),
  ].join("\n");

test("a set that was changed step by step is the set that was built at once", () => {
  fc.assert(
    fc.property(fc.array(fc.array(element, { maxLength: 6 }), { maxLength: 8 }), (steps) => {
      const have = new Map<string, SetElement>();
      let set = setOf([]);
      for (const step of steps) {
        // What is there goes, what is not comes.
        const touched = [...new Map(step.map((one) => [elementKey(one), one])).values()];
        const removed = touched.filter((one) => have.has(elementKey(one)));
        const added = touched.filter((one) => !have.has(elementKey(one)));
        for (const one of removed) have.delete(elementKey(one));
        for (const one of added) have.set(elementKey(one), one);
        const changed = changeRangeSet(set, added, removed);
        if (changed === undefined) throw new Error("the change does not fit");
        set = changed;
        const sorted = [...have.values()].toSorted((a, b) =>
          elementKey(a) < elementKey(b) ? 1 : -1,
        );
        expect(shownSet(set)).toEqual(shownSet(setOf(sorted)));
      }
    }),
    { numRuns: 250 },
  );
});

test("names ascend by their bytes; of equal ranges the first by name holds", () => {
  const set = setOf(bots.toReversed().map((bot) => ({ bot, range: "192.0.2.0/24" })));
  expect(set.names).toEqual(bots);
  expect(Array.from(set.v4.segments.owners.subarray(0, 3))).toEqual([0, 1, 0]);
  const gone = changeRangeSet(set, [], [{ bot: "a", range: "192.0.2.0/24" }]);
  expect(gone?.names).toEqual(bots.slice(1));
});

test.each(["10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "::1/64", "x", "1.2.3.4/1e1", ""])(
  "%j is no range and is refused",
  (text) => {
    expect(() => buildAddressTable([{ bot: "x", range: text }])).toThrow(TypeError);
  },
);
