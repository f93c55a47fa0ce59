// What the overview says of a cache that answers much less than it did, and of requests that fail.

import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketOf } from "../../src/core/analytics/time-buckets.ts";
import { Chance } from "../support/leaks-random.ts";
import { failingOf, fallOf, recentWindow } from "../../src/console/recent-fall.ts";

const span = (requests: number, hits: number, counts: Record<string, number> = {}) => ({
  requests,
  hits,
  counts,
});
const spans = (count: number, ...[requests, hits, counts]: Parameters<typeof span>) =>
  Array.from({ length: count }, () => span(requests, hits, counts));

test("a cache that answers less than half as often as before is told of, with why where that is known", () => {
  const day = spans(24, 100, 96);
  expect(fallOf(day, spans(15, 20, 0))).toBe(
    "the cache answered 0 % of the last 5 minutes, and 96.0 % before, not counting what never came to it",
  );
  expect(fallOf(day, spans(15, 20, 0, { pass: 19 }))).toBe(
    "the cache answered 0 % of the last 5 minutes, and 96.0 % before, not counting what never came to it; 95.0 % were not to be stored: a rule, or the backend, forbids it",
  );
  // It is told as soon as the last five minutes say so, and over as soon.
  expect(fallOf(day, [...spans(10, 20, 19), ...spans(5, 20, 0)])).toContain("5 minutes");
  expect(fallOf(day, [...spans(10, 20, 0), ...spans(5, 20, 19)])).toBeUndefined();
  // Where little is asked, it takes more of them.
  expect(fallOf(day, spans(15, 4, 0))).toContain("15 minutes");
});

test("the hours that have the fall in them are not what was before", () => {
  const [good, bad] = [spans(20, 100, 96), spans(2, 1_000, 0)];
  expect(fallOf([...good, ...bad], spans(15, 20, 0))).toContain("96.0 % before");
});

test("of a domain without earlier hours its best hour, or its best 15 minutes, is what was before", () => {
  const [good, bad] = [spans(15, 20, 19), spans(45, 20, 0)];
  expect(fallOf([span(1_200, 285)], [...good, ...bad])).toContain("95.0 % before");
  expect(fallOf([span(1_000, 900), span(1_200, 0)], spans(60, 20, 0))).toContain("90.0 % before");
  // The hour that goes on is not whole, and has the fall in it.
  expect(fallOf([span(1_000, 900)], spans(60, 20, 0))).toBeUndefined();
});

const minuteOf = (asked: number, share: number) => span(asked, Math.round(asked * share));

test("a constant fall of a young domain is told for 45 minutes at least", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 30, max: 500 }),
      fc.double({ min: 0.4, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 0.3, noNaN: true }),
      fc.integer({ min: 15, max: 60 }),
      fc.integer({ min: 0, max: 59 }),
      (asked, usual, fallenTo, goodMinutes, startMinute) => {
        const all = [
          ...spans(startMinute, 0, 0),
          ...Array.from({ length: goodMinutes }, () => minuteOf(asked, usual)),
          ...Array.from({ length: 45 }, () => minuteOf(asked, usual * fallenTo)),
        ];
        for (let fallen = 5; fallen <= 45; fallen++) {
          const until = all.slice(0, startMinute + goodMinutes + fallen);
          const hours = Array.from({ length: Math.ceil(until.length / 60) }, (_, hour) =>
            sumOfMinutes(until.slice(hour * 60, hour * 60 + 60)),
          );
          expect(fallOf(hours, [...spans(60, 0, 0), ...until].slice(-60))).toContain("5 minutes");
        }
      },
    ),
  );
});

test("a steady domain with noise is told nothing, however young, and however little it is asked", () => {
  fc.assert(
    fc.property(
      // Where little is asked, and some half of it is hits, chance can do the most.
      fc.oneof(fc.integer({ min: 3, max: 12 }), fc.integer({ min: 1, max: 60 })),
      fc.oneof(
        fc.double({ min: 0.25, max: 0.5, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
      ),
      fc.integer(),
      (asked, share, seed) => {
        const chance = new Chance(seed);
        const minutes = Array.from({ length: 60 }, () =>
          span(
            asked,
            Array.from({ length: asked }, () => chance.next()).filter((one) => one < share).length,
          ),
        );
        const hours = [sumOfMinutes(minutes.slice(0, 40)), sumOfMinutes(minutes.slice(40))];
        expect(fallOf(hours, minutes)).toBeUndefined();
        const day = Math.round(60 * asked * share);
        expect(fallOf([...spans(22, 60 * asked, day), ...hours], minutes)).toBeUndefined();
      },
    ),
    { numRuns: 2_000 },
  );
});

function sumOfMinutes(minutes: readonly ReturnType<typeof span>[]) {
  const sum = (of: "requests" | "hits"): number => minutes.reduce((all, one) => all + one[of], 0);
  return span(sum("requests"), sum("hits"));
}

test("one that answers a little less, answered little before, or was asked little is not", () => {
  expect(fallOf(spans(24, 100, 96), spans(15, 20, 10))).toBeUndefined();
  expect(fallOf(spans(24, 100, 20), spans(15, 20, 0))).toBeUndefined();
  expect(fallOf(spans(24, 100, 96), spans(15, 3, 0))).toBeUndefined();
  expect(fallOf([span(140, 40)], [...spans(15, 3, 3), ...spans(5, 20, 0)])).toBeUndefined();
});

test("whoever is blocked, or refused by a limit, was never the cache's", () => {
  for (const cache of ["blocked", "none"])
    expect(fallOf(spans(24, 100, 90), spans(15, 1_020, 18, { [cache]: 1_000 }))).toBeUndefined();
});

test("what is asked for are whole minutes that are over: 60 of a young domain, 15 of any other", () => {
  const next = 1_790_000_040;
  for (const [hours, count] of [
    [[span(1_000, 900), span(10, 9)], 60],
    [spans(24, 100, 90), 15],
  ] as const) {
    const { since, until } = recentWindow(next, hours);
    const minutes = bucketOf(until, "minute") - bucketOf(since, "minute");
    const found = [minutes / 60 + 1, since % 60, bucketOf(until, "minute") + 120];
    expect(found).toEqual([count, 0, next]);
  }
});

test("failing requests are told of from ten on, and from one in twenty", () => {
  const [quiet, failing] = [span(100, 0, { 200: 100 }), span(100, 0, { 200: 88, 500: 8, 502: 4 })];
  expect(failingOf([span(10, 0, { 500: 10 }), quiet, failing])).toBe(
    "6.0 % of the requests of this hour and the one before failed (5xx)",
  );
  expect(failingOf([quiet, span(9, 0, { 500: 9 })])).toBeUndefined();
  expect(failingOf([span(1_000, 0, { 200: 1_000 }), failing])).toBeUndefined();
  expect(failingOf([])).toBeUndefined();
});
