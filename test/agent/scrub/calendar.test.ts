// Times of cron: those that a library finds, in zones whose clocks are moved, and what a clock that jumps does to them.

import fc from "fast-check";
import { schedule as libraryTask } from "node-cron";
import { afterEach, describe, expect, test, vi } from "vitest";
import { atCronTimes, nextCronTime } from "../../../src/agent/scrub/calendar.ts";
import { cronTimes } from "../../../src/base/settings-fields.ts";

const zone = process.env["TZ"];

afterEach(() => {
  vi.useRealTimers();
  if (zone === undefined) delete process.env["TZ"];
  else process.env["TZ"] = zone;
});

function textOf(atMs: number | undefined): string {
  if (atMs === undefined) return "never";
  const at = new Date(atMs);
  const [, month = "", day = "", year = "", time = ""] = at.toString().split(" ");
  return `${year} ${month} ${day} ${time.slice(0, 5)}`;
}

describe("the next time", () => {
  test.each([
    ["17 2 * * *", "2031-01-01T02:16:59", "2031 Jan 01 02:17"],
    ["17 2 * * *", "2031-01-01T02:17:00", "2031 Jan 02 02:17"],
    ["0 12 * * 7", "2031-01-01T00:00:00", "2031 Jan 05 12:00"],
    ["0 12 * * 0", "2031-01-01T00:00:00", "2031 Jan 05 12:00"],
    ["50/5,3-5 9 * * *", "2031-01-01T09:04:30", "2031 Jan 01 09:05"],
    ["50/5,3-5 9 * * *", "2031-01-01T09:05:00", "2031 Jan 01 09:50"],
    ["0 0 13 * 5", "2031-01-01T00:00:00", "2031 Jun 13 00:00"],
    ["0 0 29 2 *", "2096-03-01T00:00:00", "2104 Feb 29 00:00"],
    ["0 0 30 2 *", "2031-01-01T00:00:00", "never"],
    ["59 23 31 12 *", "2031-12-31T23:59:00", "2032 Dec 31 23:59"],
  ])("of %s after %s", (times, after, next) => {
    expect(textOf(nextCronTime(times, new Date(after).getTime()))).toBe(next);
  });

  test.each([
    [
      "America/New_York",
      "30 2 * * *",
      "2031-03-09T00:00:00",
      ["2031 Mar 09 03:30", "2031 Mar 10 02:30"],
    ],
    [
      "America/New_York",
      "30 1 * * *",
      "2031-11-02T00:00:00",
      ["2031 Nov 02 01:30", "2031 Nov 03 01:30"],
    ],
    [
      "Asia/Kolkata",
      "30 2 * * *",
      "2031-03-09T00:00:00",
      ["2031 Mar 09 02:30", "2031 Mar 10 02:30"],
    ],
  ])("in %s, of %s", (name, times, after, expected) => {
    process.env["TZ"] = name;
    let at: number | undefined = new Date(after).getTime();
    const found: string[] = [];
    for (let no = 0; no < 2; no++) {
      at = nextCronTime(times, at ?? NaN);
      found.push(textOf(at));
    }
    expect(found).toEqual(expected);
  });

  test("is what node-cron finds, for whatever the settings accept", () => {
    const span = (least: number, most: number): fc.Arbitrary<string> => {
      const number = fc.integer({ min: least, max: most });
      const range = fc
        .tuple(number, number)
        .map(([one, other]) => `${Math.min(one, other)}-${Math.max(one, other)}`);
      const stepped = fc
        .tuple(fc.oneof(fc.constant("*"), range), fc.integer({ min: 1, max: 20 }))
        .map(([of, step]) => `${of}/${step}`);
      const part = fc.oneof(number.map(String), range, stepped);
      return fc.oneof(
        fc.constant("*"),
        fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(",")),
      );
    };
    // Months that have every day: node-cron refuses 30 February.
    const times = fc
      .tuple(span(0, 59), span(0, 23), span(1, 28), span(1, 12), span(0, 7))
      .map((fields) => fields.join(" "));
    const zones = fc.constantFrom("UTC", "Asia/Kolkata", "Australia/Eucla");
    fc.assert(
      fc.property(times, zones, fc.integer({ min: 0, max: 2 ** 41 }), (text, name, nowMs) => {
        process.env["TZ"] = name;
        expect(cronTimes()(text)).toEqual({ ok: true, value: text });
        vi.useFakeTimers({ now: nowMs, toFake: ["setTimeout", "clearTimeout", "Date"] });
        const task = libraryTask(text, () => undefined, { timezone: name });
        const [first, second] = task.getNextRuns(2).map((at) => at.getTime());
        void task.destroy();
        const found = nextCronTime(text, nowMs);
        expect([found, nextCronTime(text, found ?? NaN)]).toEqual([first, second]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("at each of the times", () => {
  const begun = (times: string, now: string): { calls: string[] } & Disposable => {
    vi.useFakeTimers({ now: new Date(now), toFake: ["setTimeout", "clearTimeout", "Date"] });
    const calls: string[] = [];
    const call = (): void => void calls.push(textOf(Date.now()));
    const calling = atCronTimes(times, () => new Date(), call);
    return { calls, [Symbol.dispose]: () => calling[Symbol.dispose]() };
  };

  test("it calls, until it is disposed of", async () => {
    const hourly = begun("17 * * * *", "2031-01-01T02:00:30");
    await vi.advanceTimersByTimeAsync(2.5 * 3_600_000);
    expect(hourly.calls).toEqual(["2031 Jan 01 02:17", "2031 Jan 01 03:17", "2031 Jan 01 04:17"]);
    hourly[Symbol.dispose]();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a time that passed while the host slept is left out", async () => {
    using hourly = begun("17 * * * *", "2031-01-01T02:00:00");
    vi.setSystemTime(new Date("2031-01-01T09:00:00"));
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    expect(hourly.calls).toEqual(["2031 Jan 01 09:17"]);
  });

  test("a clock that was years ahead delays nothing", async () => {
    using hourly = begun("17 * * * *", "2040-01-01T02:00:00");
    vi.setSystemTime(new Date("2031-01-01T09:00:00"));
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    expect(hourly.calls).toEqual(["2031 Jan 01 09:17"]);
  });

  test("what never comes is never called", async () => {
    using never = begun("0 0 30 2 *", "2031-01-01T00:00:00");
    await vi.advanceTimersByTimeAsync(3 * 86_400_000);
    expect(never.calls).toEqual([]);
  });
});
