// When the agent tries central again.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  backoffMs,
  linkBackoff,
  nextTry,
  noTries,
  refusedBackoff,
  type ContactEnd,
} from "../../src/core/backoff.ts";

const timings = { backoff: linkBackoff, refused: refusedBackoff };
const almostOne = 1 - 1e-9;

/** The longest waits of so many tries in turn, in milliseconds. */
function longest(end: ContactEnd, tries: number): readonly number[] {
  const waits: number[] = [];
  for (let soFar = noTries; waits.length < tries;) {
    const next = nextTry(end, soFar, almostOne, timings);
    soFar = next.tries;
    waits.push(Math.ceil((next.leastMs + next.moreMs) / 100) * 100);
  }
  return waits;
}

test("while nothing answers for central no wait is longer than 4 s, however long that lasts", () => {
  expect(longest({ kind: "refused" }, 9)).toEqual([
    100, 200, 400, 800, 1_600, 3_200, 4_000, 4_000, 4_000,
  ]);
  expect(Math.max(...longest({ kind: "refused" }, 1_000))).toBe(4_000);
});

test("a central that fails is left alone for ever longer, up to a minute", () => {
  expect(longest({ kind: "failed" }, 12).slice(6)).toEqual([
    6_400, 12_800, 25_600, 51_200, 60_000, 60_000,
  ]);
});

test("an absence does not lengthen the wait after a failure", () => {
  let tries = noTries;
  for (let count = 0; count < 1_000; count++)
    ({ tries } = nextTry({ kind: "refused" }, tries, almostOne, timings));
  expect(nextTry({ kind: "failed" }, tries, almostOne, timings).moreMs).toBeLessThan(100);
});

test("a central that crashes five times in a row is met within 4 s each time", () => {
  let tries = noTries;
  for (let crash = 1; crash <= 5; crash++) {
    // It served for a moment, and is away for a while.
    const ends = [{ kind: "failed" }, ...Array.from({ length: 9 }, () => ({ kind: "refused" }))];
    for (const end of ends as readonly ContactEnd[]) {
      const next = nextTry(end, tries, almostOne, timings);
      ({ tries } = next);
      expect(next.leastMs + next.moreMs).toBeLessThan(4_000);
    }
  }
});

test("a drained fleet comes back over as much time as it was to stay away", () => {
  const end = { kind: "drained", reconnectAfterMs: 1_000 } as const;
  const all = Array.from({ length: 11 }, (_, no) =>
    nextTry(end, { refused: 5, failed: 5 }, no / 11, timings),
  );
  expect(new Set(all.map(({ leastMs }) => leastMs))).toEqual(new Set([1_000]));
  const spread = all.map(({ moreMs }) => moreMs);
  expect(Math.min(...spread)).toBe(0);
  expect(Math.max(...spread)).toBe(909);
});

test("a wait is below its ceiling, and never negative", () => {
  const random = fc.double({ min: 0, max: almostOne, noNaN: true });
  fc.assert(
    fc.property(fc.nat(2_000), random, (attempt, chance) => {
      const ms = backoffMs(attempt, chance);
      expect(ms).toBeGreaterThanOrEqual(0);
      expect(ms).toBeLessThan(Math.min(60_000, 100 * 2 ** Math.min(attempt, 30)));
    }),
  );
});
