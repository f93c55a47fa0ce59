// When a list is fetched again, and when it is stale.

import { expect, test } from "vitest";
import { nextFetchMs, staleFromMs } from "../../src/core/list-source.ts";

const day = 86_400;
const dayMs = day * 1_000;

test("a list that came is fetched again after the interval, up to a tenth later", () => {
  expect(nextFetchMs(day, 0, 0)).toBe(dayMs);
  expect(nextFetchMs(day, 0, 0.999)).toBeLessThan(dayMs * 1.1);
  expect(nextFetchMs(day, 0, 0.999)).toBeGreaterThan(dayMs * 1.09);
});

test("one that did not come is asked for after a minute, then ever later, at most after an hour", () => {
  const waits = [1, 2, 3, 6, 7, 50].map((failures) => nextFetchMs(day, failures, 0) / 60_000);
  expect(waits).toEqual([1, 2, 4, 32, 60, 60]);
  expect(nextFetchMs(day, Infinity, 0)).toBe(3_600_000);
});

test("no attempt waits longer than the interval", () => {
  expect(nextFetchMs(900, 50, 0)).toBe(900_000);
  expect(nextFetchMs(900, 1, 0, 9e9)).toBe(900_000);
});

test("a server that asks for time gets it", () => {
  expect(nextFetchMs(day, 1, 0, 600_000)).toBe(600_000);
  expect(nextFetchMs(day, 1, 0, 1_000)).toBe(60_000);
});

test("a list is stale after three intervals, and not before six hours", () => {
  expect(staleFromMs(0, day)).toBe(3 * dayMs);
  expect(staleFromMs(0, 900)).toBe(6 * 3_600_000);
});
