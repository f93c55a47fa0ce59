// When the agent tries central again.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  backoffMs,
  linkBackoff,
  nextTry,
  refusedBackoff,
  type ContactEnd,
} from "../../src/core/backoff.ts";

const timings = { backoff: linkBackoff, refused: refusedBackoff };
const almostOne = 1 - 1e-9;

/** The longest waits of so many tries in turn, in milliseconds. */
function longest(end: ContactEnd, tries: number): readonly number[] {
  const waits: number[] = [];
  for (let attempt = 0; waits.length < tries; attempt++) {
    const next = nextTry(end, attempt, almostOne, timings);
    ({ attempt } = next);
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

test("an absence does not lengthen the first wait after a failure beyond 6.4 s", () => {
  let attempt = 0;
  for (let tries = 0; tries < 1_000; tries++)
    attempt = nextTry({ kind: "refused" }, attempt, almostOne, timings).attempt + 1;
  const { moreMs } = nextTry({ kind: "failed" }, attempt, almostOne, timings);
  expect(moreMs).toBeLessThan(12_800);
});

test("a drained fleet comes back over as much time as it was to stay away", () => {
  const end = { kind: "drained", reconnectAfterMs: 1_000 } as const;
  const all = Array.from({ length: 11 }, (_, no) => nextTry(end, 5, no / 11, timings));
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
