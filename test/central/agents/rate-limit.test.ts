// Buckets of a limit: what weighs more takes more, and what weighs more than a bucket holds leaves a debt.

import { expect, test } from "vitest";
import { createRateLimit } from "../../../src/central/agents/rate-limit.ts";

function open() {
  let atMs = 0;
  const limit = createRateLimit({ burst: 10, perSecond: 2, keysMax: 2 }, () => atMs);
  return { limit, later: (ms: number) => (atMs += ms) };
}

test("a weight is taken whole or not at all", () => {
  const { limit, later } = open();
  expect(limit.take("a", 7)).toBe(0);
  expect(limit.take("a", 4)).toBe(500);
  expect(limit.take("a", 3)).toBe(0);
  expect(limit.take("a")).toBe(500);
  later(500);
  expect(limit.take("a")).toBe(0);
  expect(limit.take("b", 10)).toBe(0);
});

test("what weighs more than the burst needs a full bucket and is paid for afterwards", () => {
  const { limit, later } = open();
  limit.take("a");
  expect(limit.take("a", 30)).toBe(500);
  later(500);
  expect(limit.take("a", 30)).toBe(0);
  expect(limit.waitMs("a")).toBe(10_500);
  later(10_500);
  expect(limit.take("a")).toBe(0);
});

test("what is given back is there again, never more than the burst", () => {
  const { limit } = open();
  limit.take("a", 10);
  limit.give("a", 4);
  expect(limit.take("a", 4)).toBe(0);
  limit.give("a", 99);
  expect(limit.take("a", 10)).toBe(0);
  expect(limit.waitMs("a")).toBe(500);
});

test("centrals divide a limit, and each has one at least", () => {
  const nowMs = (): number => 0;
  let centrals = 1;
  const open = () =>
    createRateLimit({ burst: 10, perSecond: 2, keysMax: 9 }, nowMs, () => centrals);
  const taken = (limit: ReturnType<typeof open>): number => {
    const waits = Array.from({ length: 20 }, () => limit.take("a"));
    return waits.filter((ms) => ms === 0).length;
  };
  expect(taken(open())).toBe(10);
  centrals = 3;
  const limit = open();
  expect(taken(limit)).toBe(3);
  // A third of a token is left, and two thirds of a token a second come.
  expect(limit.waitMs("a")).toBeCloseTo(1_000);
  centrals = 100;
  expect(taken(open())).toBe(1);
  // One that was alone and is not any more keeps no more than its share.
  centrals = 1;
  const shared = open();
  shared.take("a");
  centrals = 5;
  expect(taken(shared)).toBe(2);
});
