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
