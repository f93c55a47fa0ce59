// Whose bytes go where there is no room for all: whatever the sizes, nobody's while somebody else holds more.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { takeFromLargest } from "../../src/core/fair-eviction.ts";

type Piece = { readonly name: string; readonly bytes: number };

const shelves = fc.array(fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 30 }), {
  minLength: 1,
  maxLength: 12,
});
/** Bytes of each that cannot be taken. */
const fixed = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 12, maxLength: 12 });

function take(
  sizes: readonly (readonly number[])[],
  held: readonly number[],
  limits: { excess: number; countMax: number },
): { readonly taken: readonly Piece[]; readonly before: number[]; readonly after: number[] } {
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
  const before = sizes.map((own, no) => sum(own) + (held[no] ?? 0));
  const queues = sizes.map((own, no) => own.map((bytes): Piece => ({ name: `${no}`, bytes })));
  const holders = before.map((bytes, no) => ({ name: `${no}`, bytes }));
  const taken = takeFromLargest(holders, limits, (name) => queues[Number(name)]?.shift());
  // Each in its own order, none twice, none passed over.
  sizes.forEach((own, no) => {
    const its = taken.filter(({ name }) => name === `${no}`).map(({ bytes }) => bytes);
    expect(its).toEqual(own.slice(0, its.length));
  });
  const after = before.map(
    (bytes, no) => bytes - sum(taken.filter(({ name }) => name === `${no}`).map((p) => p.bytes)),
  );
  return { taken, before, after };
}

test("takes what it is asked for, or all there is", () => {
  fc.assert(
    fc.property(shelves, fixed, fc.integer({ min: -5, max: 3_000 }), (sizes, held, excess) => {
      const { taken } = take(sizes, held, { excess, countMax: 10_000 });
      const bytes = taken.map((piece) => piece.bytes);
      const enough = bytes.reduce((a, b) => a + b, 0) >= excess;
      expect(enough || taken.length === sizes.flat().length).toBe(true);
      // Not one too many: without the last it were too little.
      if (taken.length > 0)
        expect(bytes.slice(0, -1).reduce((a, b) => a + b, 0)).toBeLessThan(excess);
    }),
  );
});

test("from nobody while another holds more and has something to give; in no step beyond its bound", () => {
  fc.assert(
    fc.property(shelves, fixed, fc.nat(3_000), fc.nat(60), (sizes, held, excess, countMax) => {
      const { taken, after } = take(sizes, held, { excess, countMax });
      expect(taken.length).toBeLessThanOrEqual(countMax);
      const left = sizes.map(
        (own, no) => own.length > taken.filter((p) => p.name === `${no}`).length,
      );
      after.forEach((bytes, no) => {
        const last = taken.findLast(({ name }) => name === `${no}`);
        if (last === undefined) return;
        // Before the last piece went it held the most of those that had anything to give.
        after.forEach((other, at) => {
          if (left[at] === true) expect(other).toBeLessThanOrEqual(bytes + last.bytes);
        });
      });
    }),
  );
});

test("from nobody who holds no more than an equal share of what there is room for", () => {
  fc.assert(
    fc.property(shelves, fc.nat(3_000), (sizes, room) => {
      const nothingHeld: readonly number[] = [];
      const total = sizes.flat().reduce((a, b) => a + b, 0);
      const limits = { excess: total - room, countMax: 10_000 };
      const { before, after } = take(sizes, nothingHeld, limits);
      before.forEach((bytes, no) => {
        if (bytes <= room / sizes.length) expect(after[no]).toBe(bytes);
      });
    }),
  );
});
