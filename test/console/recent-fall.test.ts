// What the overview says of a cache that answers much less than it did, and of requests that fail.

import { expect, test } from "vitest";
import { failingOf, fallOf } from "../../src/console/recent-fall.ts";
import type { Analytics } from "../../src/wire/customer/analytics.ts";

const totals = (requests: number, hits: number, counts: Record<string, number> = {}) => ({
  requests,
  hits,
  counts,
});

test("a cache that answers less than half as often as before is told of, with why where that is known", () => {
  expect(fallOf(totals(1_200, 960), totals(200, 0), 15)).toBe(
    "the cache answered 0 % of the last 15 minutes, and 96.0 % before",
  );
  expect(fallOf(totals(1_200, 960), totals(200, 0, { pass: 190 }), 15)).toBe(
    "the cache answered 0 % of the last 15 minutes, and 96.0 % before; 95.0 % were not to be stored: a rule, or the backend, forbids it",
  );
});

test("one that answers a little less, answered little before, or was asked little is not", () => {
  expect(fallOf(totals(1_200, 1_060), totals(200, 100), 15)).toBeUndefined();
  expect(fallOf(totals(1_200, 100), totals(200, 0), 15)).toBeUndefined();
  expect(fallOf(totals(1_040, 960), totals(40, 0), 15)).toBeUndefined();
  expect(fallOf(totals(230, 30), totals(200, 0), 15)).toBeUndefined();
});

test("whoever is blocked was never the cache's", () => {
  expect(
    fallOf(totals(11_000, 900, { blocked: 10_000 }), totals(10_100, 80, { blocked: 10_000 }), 15),
  ).toBeUndefined();
});

const hour = (requests: number, counts: Record<string, number>) =>
  ({ at: 0, requests, counts }) as unknown as Analytics["series"][number];

test("failing requests are told of from ten on, and from one in twenty", () => {
  const [quiet, failing] = [hour(100, { 200: 100 }), hour(100, { 200: 88, 500: 8, 502: 4 })];
  expect(failingOf([hour(10, { 500: 10 }), quiet, failing])).toBe(
    "6.0 % of the requests of this hour and the one before failed (5xx)",
  );
  expect(failingOf([quiet, hour(9, { 500: 9 })])).toBeUndefined();
  expect(failingOf([hour(1_000, { 200: 1_000 }), failing])).toBeUndefined();
  expect(failingOf([])).toBeUndefined();
});
