// The arithmetic of the last hour, with times that the test sets: rates, holes, counters that go back, and the ring.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  holesOf,
  hourSeries,
  LastHour,
  readGauges,
  readingOf,
  runsOf,
  samplePeriodMs,
  samplesMax,
  sampling,
  summaryOf,
} from "../../../src/agent/admin/last-hour.ts";
import { until } from "../../support/until.ts";
import { GivenHour, quietReading } from "./hours.ts";

test("rates are differences over the time between two readings; of the first there is none", () => {
  const given = new GivenHour()
    .take({ requests: 1_000, hits: 500, blocked: 9, originWaits: 100, originWaitS: 40 })
    .take({ requests: 1_030, hits: 520, blocked: 12, originWaits: 110, originWaitS: 42.5 })
    .take(
      { requests: 1_050, hits: 540, blocked: 12, originWaits: 110, originWaitS: 42.5 },
      samplePeriodMs + 5_000,
    );
  expect(given.values()).toMatchObject({
    requestRate: [Number.NaN, 2, 1],
    hitRatio: [Number.NaN, 20 / 30, 1],
    // Where no origin was asked there is no time of it.
    originS: [Number.NaN, 0.25, Number.NaN],
    blockedRate: [Number.NaN, 0.2, 0],
  });
});

test("gauges are what they are, and unknown where the metrics do not say them", () => {
  const given = new GivenHour()
    .take({ waiting: 5, oldestS: 1.5, journalLag: Number.NaN, canaryAgeS: 60 })
    .take({ waiting: 0, journalLag: 3, canaryAgeS: Number.NaN });
  expect(given.values()).toMatchObject({
    waiting: [5, 0],
    oldestS: [1.5, 0],
    journalLag: [Number.NaN, 3],
    canaryAgeS: [60, Number.NaN],
  });
});

test("a counter that went back gives no rate, least of all a negative one, and the next is right", () => {
  const given = new GivenHour()
    .take({ requests: 100, hits: 50, blocked: 4 })
    .take({ requests: 40, hits: 45, blocked: 4 })
    .take({ requests: 70, hits: 60, blocked: 4 });
  expect(given.values()).toMatchObject({
    requestRate: [Number.NaN, Number.NaN, 2],
    hitRatio: [Number.NaN, Number.NaN, 0.5],
    blockedRate: [Number.NaN, 0, 0],
  });
});

test.each([
  ["the host slept, its steady clock too", samplePeriodMs, 600_000],
  ["main was held up", samplePeriodMs + 600_000, 0],
])("a sample that was missed is a hole: %s", (_why, afterMs, asleepMs) => {
  const given = new GivenHour();
  for (const requests of [0, 15, 30]) given.take({ requests });
  given.take({ requests: 900 }, afterMs, asleepMs);
  for (const requests of [915, 930]) given.take({ requests });
  const view = given.view();
  expect(view.values.requestRate).toEqual([Number.NaN, 1, 1, Number.NaN, 1, 1]);
  // The gauges of the first one behind it are known, and yet no line leads there.
  expect(runsOf(view, "waiting").map((run) => run.length)).toEqual([3, 3]);
  expect(runsOf(view, "requestRate").map((run) => run.length)).toEqual([2, 2]);
  const [hole, ...others] = holesOf(view.atMs);
  expect((hole?.untilMs ?? 0) - (hole?.fromMs ?? 0)).toBe(samplePeriodMs + 600_000);
  expect(others).toEqual([]);
});

test("what is unknown in between is a hole too", () => {
  const given = new GivenHour();
  for (const journalLag of [1, Number.NaN, 2, 3, Number.NaN, Number.NaN, 4])
    given.take({ journalLag });
  const runs = runsOf(given.view(), "journalLag");
  expect(runs.map((run) => run.map(({ value }) => value))).toEqual([[1], [2, 3], [4]]);
  expect(holesOf(given.view().atMs)).toEqual([]);
});

test("a clock that was set back begins anew; one that was set ahead leaves a hole", () => {
  const given = new GivenHour();
  for (const requests of [0, 15, 30]) given.take({ requests });
  given.take({ requests: 45 }, samplePeriodMs, -3_600_000);
  expect(given.values().requestRate).toEqual([1]);
  given.take({ requests: 60 }, samplePeriodMs, 1_800_000);
  expect(given.values().requestRate).toEqual([1, Number.NaN]);
  expect(holesOf(given.view().atMs)).toHaveLength(1);
});

test("the ring keeps the newest hour, and of it only what is within an hour before now", () => {
  const given = new GivenHour();
  for (let n = 0; n < samplesMax * 2 + 17; n++) given.take({ waiting: n });
  const last = samplesMax * 2 + 16;
  const { atMs, values } = given.view();
  expect(values.waiting).toEqual(
    Array.from({ length: samplesMax }, (_, at) => last - samplesMax + 1 + at),
  );
  expect(atMs.at(-1)).toBe(given.wallMs);
  expect(atMs).toEqual(atMs.toSorted((one, other) => one - other));
  expect(given.hour.view(given.wallMs + 1_800_000).values.waiting).toHaveLength(samplesMax / 2 + 1);
  expect(given.hour.view(given.wallMs + 3_600_001).atMs).toEqual([]);
});

test("now is the newest sample, and unknown once that is too old", () => {
  const given = new GivenHour().take({ requests: 0 }).take({ requests: 30 }).take({ requests: 45 });
  const { wallMs } = given;
  expect(summaryOf(given.view(), "requestRate")).toEqual({
    now: 1,
    least: { atMs: wallMs, value: 1 },
    most: { atMs: wallMs - samplePeriodMs, value: 2 },
  });
  const later = given.hour.view(wallMs + samplePeriodMs * 2 + 1);
  expect(later.latest).toBeUndefined();
  expect(summaryOf(later, "requestRate")).toMatchObject({ now: Number.NaN, most: { value: 2 } });
  expect(summaryOf(given.view(), "originS")).toBeUndefined();
  expect(summaryOf(new LastHour().view(wallMs), "waiting")).toBeUndefined();
});

test("whatever counters do, no rate is negative, and what the runs hold is what was measured", () => {
  const step = fc.record({
    requests: fc.nat(1_000),
    hits: fc.nat(1_000),
    afterMs: fc.integer({ min: 1, max: 60_000 }),
    asleepMs: fc.integer({ min: -50_000, max: 50_000 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const given = new GivenHour();
      for (const { afterMs, asleepMs, ...reading } of steps) given.take(reading, afterMs, asleepMs);
      const view = given.view();
      for (const name of hourSeries) {
        const known = view.values[name].filter((value) => !Number.isNaN(value));
        expect(known.every((value) => value >= 0)).toBe(true);
        const runs = runsOf(view, name);
        expect(runs.flat().map(({ value }) => value)).toEqual(known);
        expect(runs.every((run) => holesOf(run.map(({ atMs }) => atMs)).length === 0)).toBe(true);
      }
      expect(view.atMs.every((at, i) => i === 0 || at > (view.atMs[i - 1] ?? at))).toBe(true);
    }),
  );
});

test("a reading is made of the gauges of these names; without one it is unknown", () => {
  const sums = { requests: 1, hits: 2, blocked: 3, originWaits: 4, originWaitS: 5 };
  const gauges: Readonly<Record<string, number>> = Object.fromEntries(
    readGauges.map((name, at) => [name, 10 ** at]),
  );
  expect(readingOf(sums, (name) => gauges[name])).toEqual({
    ...sums,
    waiting: 11,
    spoolBytes: 100,
    oldestS: 1_000,
    journalLag: 90_000,
    canaryAgeS: 1_000_000,
  });
  expect(readingOf(sums, () => undefined)).toMatchObject({
    requests: 1,
    waiting: Number.NaN,
    journalLag: Number.NaN,
  });
});

test("sampling begins at once, says what fails, and ends", async () => {
  const hour = new LastHour();
  const errors: unknown[] = [];
  const stop = new AbortController().signal;
  const options = {
    stop,
    now: () => new Date(5_000),
    onError: (error: unknown) => errors.push(error),
  };
  {
    await using _good = sampling(hour, async () => quietReading, options);
    await until("a sample", () => hour.view(5_000).atMs.length === 1);
    await using _bad = sampling(hour, async () => Promise.reject(new Error("no")), options);
    await until("an error", () => errors.length === 1);
  }
  expect(errors).toEqual([new Error("no")]);
});
