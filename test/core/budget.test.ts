// How often something may happen.

import fc from "fast-check";
import { expect, test } from "vitest";
import { Budget } from "../../src/core/budget.ts";

test("so many at once, then as they come back", () => {
  const budget = new Budget({ burst: 2, perSecond: 10 }, 1_000);
  const taken = [1_000, 1_000, 1_000, 1_050, 1_100, 1_100, 9_000, 9_000, 9_000].map((nowMs) =>
    budget.take(nowMs),
  );
  expect(taken).toEqual([true, true, false, false, true, false, true, true, false]);
});

test("never more in a span than the burst and what the span gives back, whatever the clock does", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -50, max: 200 }), { maxLength: 300 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 0, max: 50 }),
      (steps, burst, perSecond) => {
        const budget = new Budget({ burst, perSecond }, 0);
        let nowMs = 0;
        let latestMs = 0;
        let taken = 0;
        for (const step of steps) {
          nowMs += step;
          latestMs = Math.max(latestMs, nowMs);
          if (budget.take(nowMs)) taken++;
        }
        expect(taken).toBeLessThanOrEqual(burst + (latestMs * perSecond) / 1_000 + 1e-6);
      },
    ),
  );
});
