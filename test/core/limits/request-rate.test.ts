// Rates in ticks of 32 bits against a bucket in exact time: none is let in that the bucket would refuse, and none refused that a bucket a thousandth slower lets in.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  burstMax,
  burstOf,
  debtOf,
  debtTicksMax,
  fullAfter,
  isFull,
  leftOf,
  paceOf,
  tickOf,
  waitOf,
  type RateSettings,
} from "../../../src/core/limits/request-rate.ts";

/** A bucket in exact time. */
class Bucket {
  readonly #burst: number;
  readonly #perUs: number;
  #tokens: number;
  #atUs: number;

  constructor({ rate, per_s: perS, burst }: RateSettings, atUs: number, share = 1) {
    this.#burst = burst ?? rate;
    this.#perUs = (share * rate) / (perS * 1e6);
    this.#tokens = this.#burst;
    this.#atUs = atUs;
  }

  tokens(nowUs: number): number {
    return Math.min(this.#burst, this.#tokens + (nowUs - this.#atUs) * this.#perUs);
  }

  take(nowUs: number): void {
    this.#tokens = this.tokens(nowUs) - 1;
    this.#atUs = nowUs;
  }
}

const settings = fc
  .record({
    rate: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 1_000 })),
    per_s: fc.constantFrom(1, 7, 60, 3_600),
    burst: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 50 })),
  })
  .filter(({ rate, per_s: perS }) => rate / perS <= 1_000);

/** Gaps in intervals of the rate, so that every rate is met where it decides. */
const gaps = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true })), {
  maxLength: 120,
});

test("a rate lets in what an exact bucket does, to a thousandth", () => {
  fc.assert(
    fc.property(settings, fc.integer({ min: 0, max: 2 ** 45 }), gaps, (asked, startUs, all) => {
      const pace = paceOf(asked);
      const exact = new Bucket(asked, startUs);
      const slower = new Bucket(asked, startUs, 1 - 1 / 1_000);
      const intervalUs = (asked.per_s * 1e6) / asked.rate;
      let nowUs = startUs;
      let fullAt = tickOf(nowUs, pace.tickPower);
      for (const gap of all) {
        nowUs += gap * intervalUs;
        const nowTick = tickOf(nowUs, pace.tickPower);
        const debt = debtOf(fullAt, nowTick, pace);
        const waitUs = waitOf(debt, pace);
        if (waitUs === 0) {
          expect(exact.tokens(nowUs)).toBeGreaterThan(1 - 2 / 1_000);
          expect(leftOf(debt, pace)).toBeGreaterThanOrEqual(1);
          fullAt = fullAfter(debt, nowTick, pace);
          exact.take(nowUs);
          slower.take(nowUs);
        } else {
          expect(slower.tokens(nowUs)).toBeLessThan(1 + 2 / 1_000);
          expect(leftOf(debt, pace)).toBe(0);
          // Whoever waits as long as he is told is let in.
          const then = tickOf(nowUs + waitUs, pace.tickPower);
          expect(waitOf(debtOf(fullAt, then, pace), pace)).toBe(0);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test("over a long time no more is let in than the burst and the rate", () => {
  fc.assert(
    fc.property(settings, fc.double({ min: 0.05, max: 0.95, noNaN: true }), (asked, gap) => {
      const pace = paceOf(asked);
      const intervalUs = (asked.per_s * 1e6) / asked.rate;
      let [nowUs, letIn] = [2 ** 40, 0];
      let fullAt = tickOf(nowUs, pace.tickPower);
      for (let asks = 0; asks < 3_000; asks++, nowUs += gap * intervalUs) {
        const nowTick = tickOf(nowUs, pace.tickPower);
        const debt = debtOf(fullAt, nowTick, pace);
        if (waitOf(debt, pace) > 0) continue;
        letIn++;
        fullAt = fullAfter(debt, nowTick, pace);
      }
      const passedIntervals = (nowUs - 2 ** 40) / intervalUs;
      const burst = asked.burst ?? asked.rate;
      expect(letIn).toBeLessThanOrEqual(burst + passedIntervals + 0.01);
      const expected = Math.min(3_000, burst + passedIntervals);
      // A bucket of one token loses what comes back between two requests.
      if (burst > 1) expect(letIn).toBeGreaterThan(expected * (1 - 1 / 900) - 2);
    }),
  );
});

test.each<[RateSettings, number, number]>([
  [{ rate: 1_000, per_s: 1, burst: 1 }, 0, 1_000],
  [{ rate: 5, per_s: 60, burst: 10 }, 13, 1_465],
  [{ rate: 1, per_s: 86_400, burst: 1 }, 26, 1_288],
  [{ rate: 100_000, per_s: 100, burst: null }, 0, 1_000],
])("%j has ticks of 2^%i µs, %i to a token", (asked, tickPower, interval) => {
  expect(paceOf(asked)).toMatchObject({ tickPower, interval });
});

test("no rate has a bucket emptier than what is taken for one of another day", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 86_400 }),
      fc.integer({ min: 1, max: 100_000 }),
      (perS, rate) => {
        fc.pre(rate / perS <= 1_000);
        const { interval, tolerance, tickPower } = paceOf({ rate, per_s: perS, burst: burstMax });
        expect(tolerance + interval).toBeLessThan(debtTicksMax);
        expect(tickPower).toBeLessThan(32);
      },
    ),
  );
});

test("ticks wrap around without a word", () => {
  const pace = paceOf({ rate: 10, per_s: 1, burst: 3 });
  const wrapUs = 2 ** 32 * 2 ** pace.tickPower;
  for (const startUs of [wrapUs / 2 - 150_000, wrapUs - 150_000]) {
    let fullAt = tickOf(startUs, pace.tickPower);
    const letIn: number[] = [];
    for (let ms = 0; ms < 400; ms += 7) {
      const nowTick = tickOf(startUs + ms * 1_000, pace.tickPower);
      const debt = debtOf(fullAt, nowTick, pace);
      if (waitOf(debt, pace) > 0) continue;
      letIn.push(ms);
      fullAt = fullAfter(debt, nowTick, pace);
    }
    expect(letIn).toEqual([0, 7, 14, 105, 203, 301]);
  }
});

test("who comes back after the ticks have wrapped is refused in one token's time at most, and no bucket of today is taken for an old one", () => {
  const rules: readonly RateSettings[] = [
    { rate: 1_000, per_s: 1, burst: 10_000 },
    { rate: 1_000, per_s: 1, burst: 1 },
    { rate: 5, per_s: 60, burst: null },
    { rate: 20, per_s: 1, burst: 200 },
    { rate: 1, per_s: 86_400, burst: 1 },
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...rules),
      fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      fc.integer({ min: 0, max: 2 ** 31 }),
      (rule, fullAt, beforeTicks) => {
        const pace = paceOf(rule);
        // `beforeTicks` before the tick at which the bucket was full comes again.
        const debt = debtOf(fullAt, (fullAt - beforeTicks) | 0, pace);
        const isOfToday = beforeTicks <= pace.tolerance + pace.interval;
        expect(debt).toBe(isOfToday ? beforeTicks : 0);
        expect(waitOf(debt, pace) > 0).toBe(isOfToday && beforeTicks > pace.tolerance);
        // Nobody gets the place of a bucket that owes something.
        if (debt > 0) expect(isFull(fullAt, (fullAt - beforeTicks) | 0)).toBe(false);
      },
    ),
    { numRuns: 2_000 },
  );
  for (const rule of rules) {
    const pace = paceOf(rule);
    let [refused, left] = [0, 0];
    const visits = 2 ** 16;
    // All over the 2^25 ticks in which a debt may be one of any rule.
    for (let visit = 0; visit < visits; visit++) {
      const debt = debtOf(0, -1 - visit * (debtTicksMax / visits), pace);
      if (waitOf(debt, pace) > 0) refused++;
      if (leftOf(debt, pace) === burstOf(rule)) left++;
    }
    const share = visits / debtTicksMax;
    expect(refused).toBeLessThanOrEqual(Math.ceil(pace.interval * share));
    expect(left).toBeGreaterThan(visits - 2 - (pace.tolerance + pace.interval) * share);
    expect(pace.interval / 2 ** 32).toBeLessThanOrEqual(1 / 2_000_000);
  }
});
