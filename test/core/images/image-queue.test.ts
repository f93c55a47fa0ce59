// Domains take turns at the encoder, and each picture has its turn.

import fc from "fast-check";
import { expect, test } from "vitest";
import { avifQuality } from "../../../src/core/images/image-quality.ts";
import { nextPicture } from "../../../src/core/images/image-queue.ts";

const named = (...domains: string[]) => domains.map((domain) => ({ domain }));

test.each<[string, readonly string[], readonly (readonly [string, number])[], number | undefined]>([
  ["nothing waits", [], [], undefined],
  ["the first of all", ["a", "b"], [], 0],
  ["a domain that had no turn before one that had", ["a", "a", "b"], [["a", 1]], 2],
  [
    "the domain whose turn is longest ago",
    ["a", "b", "c"],
    [
      ["a", 3],
      ["b", 1],
      ["c", 2],
    ],
    1,
  ],
  [
    "the first of a domain",
    ["a", "b", "b"],
    [
      ["a", 2],
      ["b", 1],
    ],
    1,
  ],
])("%s", (_name, waiting, turns, next) => {
  expect(nextPicture(named(...waiting), new Map(turns))).toBe(next);
});

test("between two turns of a domain each other domain that waits has one at most", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 30 }), (domains) => {
      const waiting = named(...domains);
      const turns = new Map<string, number>();
      const order: string[] = [];
      for (let turn = 1; waiting.length > 0; turn++) {
        const [one] = waiting.splice(nextPicture(waiting, turns) ?? 0, 1);
        if (one === undefined) break;
        // Nobody who waits is passed over twice for the same other one.
        const since = order.slice(order.lastIndexOf(one.domain) + 1);
        expect(new Set(since).size).toBe(since.length);
        turns.set(one.domain, turn);
        order.push(one.domain);
      }
      expect(order.toSorted()).toEqual(domains.toSorted());
    }),
  );
});

test("the quality of AVIF rises with the one that is asked for, within its scale", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 99 }), (quality) => {
      const [one, more] = [avifQuality(quality), avifQuality(quality + 1)];
      expect(one).toBeGreaterThanOrEqual(1);
      expect(more).toBeLessThanOrEqual(100);
      expect(more).toBeGreaterThanOrEqual(one);
    }),
  );
  expect(avifQuality(80)).toBe(62);
});
