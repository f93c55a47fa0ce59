// How old a response is, when it comes in and later.

import { describe, expect, it } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import {
  currentAgeS,
  initialAge,
  isFresh,
  isOvertaken,
  madeAfter,
  staleSince,
} from "../../../src/core/http/http-age.ts";

const now = Date.UTC(2026, 0, 1);

describe("a stored response", () => {
  const stored = { storedAtMs: now, initialAgeS: 5, freshForS: 10 };
  it.each([
    [now, 5, true],
    [now + 4_999, 9, true],
    [now + 5_000, 10, false],
    [now - 1, Infinity, false],
  ])("at %d", (at, age, isStillFresh) => {
    expect(currentAgeS(stored, at)).toBe(age);
    expect(isFresh(stored, at)).toBe(isStillFresh);
  });
});

describe("a response that a clear has made stale", () => {
  const stored = { storedAtMs: now, initialAgeS: 5, freshForS: 100, size: 7 };
  it.each([
    ["then", now + 20_000, 25],
    ["within a second", now + 20_999, 25],
    ["in the second in which it was stored", now - 500, 5],
    ["by a clock that is ahead", now + 3_600_000, 35],
    ["at a time that is not known", -Infinity, -Infinity],
    ["after its lifetime", now + 200_000, 35],
  ])("%s", (_name, sinceMs, freshForS) => {
    const atMs = now + 30_000;
    const stale = staleSince(stored, sinceMs, atMs);
    expect(stale).toEqual({ ...stored, freshForS });
    expect(isFresh(stale, atMs)).toBe(false);
  });

  it("was stale before, and stays so since then", () => {
    const old = { ...stored, freshForS: 10 };
    expect(staleSince(old, now + 20_000, now + 30_000)).toEqual(old);
  });
});

describe("a response that comes after another was stored", () => {
  const dated = (date: string | undefined, storedAtMs: number, freshForS = 10) => ({
    headers: date === undefined ? [] : [["date", date] as const],
    storedAtMs,
    initialAgeS: 0,
    freshForS,
  });
  const [early, late] = ["Wed, 31 Dec 2025 23:59:55 GMT", "Thu, 01 Jan 2026 00:00:00 GMT"];
  const stored = dated(late, now);

  it.each([
    ["is older", dated(early, now + 5_000), stored, true],
    ["is older, and its head came before the other's", dated(early, now - 1_000), stored, true],
    ["is of the same second", dated(late, now + 5_000), stored, false],
    ["is newer", stored, dated(early, now), false],
    ["has no date", dated(undefined, now), stored, false],
    ["has no date that can be read", dated("late", now), stored, false],
    ["finds one without date", dated(early, now), dated(undefined, now), false],
    ["finds one that is stale", dated(early, now + 10_000), stored, false],
    ["finds one that is asked about at each use", dated(early, now), dated(late, now, 0), false],
  ])("%s", (_name, answer, other, expected) => {
    expect(isOvertaken(answer, other, now + 60_000)).toBe(expected);
  });

  // The origin's clock had run an hour ahead when the stored one came.
  const ahead = dated("Thu, 01 Jan 2026 01:00:00 GMT", now, 7_200);
  it.each([
    ["was asked for before that came in", now - 1, true],
    ["was asked for since then", now, false],
    ["is known to be made since then", now + 60_000, false],
    ["may be older by what a cache on the way says", -Infinity, true],
  ])("%s, and its Date is earlier", (_name, madeAfterMs, expected) => {
    const answer = { ...dated("Thu, 01 Jan 2026 00:10:00 GMT", now + 600_000), madeAfterMs };
    expect(isOvertaken(answer, ahead, now + 600_000)).toBe(expected);
  });

  it("finds one of the future, stored before our own clock was put back: that stands in nobody's way", () => {
    const answer = { ...dated(early, now - 3_000_000), madeAfterMs: now - 3_000_000 };
    expect(isOvertaken(answer, ahead, now - 3_000_000)).toBe(false);
    expect(isOvertaken(answer, ahead, now)).toBe(true);
  });
});

describe("when a response can have been made", () => {
  it.each<[string, readonly Field[], number]>([
    ["after it was asked for", [["Date", "Wed, 31 Dec 2025 22:00:00 GMT"]], now],
    ["before that by its age, where a cache had it", [["Age", "90"]], now - 90_000],
    ["by the first member, where the age is a list", [["Age", "90,7200"]], now - 90_000],
    ["at any time, where lines were put together", [["Age", "0, 0"]], -Infinity],
    [
      "at any time, where there are two",
      [
        ["Age", "0"],
        ["Age", "0"],
      ],
      -Infinity,
    ],
  ])("%s", (_name, fields, expected) => {
    expect(madeAfter({ fields, requestedAtMs: now })).toBe(expected);
  });
});

describe("a response that comes in", () => {
  const date = (value: string): Field => ["Date", value];
  it.each<[string, readonly Field[], number]>([
    ["says its age, and took its time", [["Age", "2"]], 5],
    ["has been under way by its Date", [date("Wed, 31 Dec 2025 23:59:00 GMT")], 60],
    ["is of a clock that is ahead", [date("Thu, 01 Jan 2026 01:00:00 GMT")], 3],
    ["says nothing", [], 3],
    [
      "says two ages",
      [
        ["Age", "0"],
        ["Age", "0"],
      ],
      2 ** 31,
    ],
    ["says a list, whose first member counts", [["Age", "2,7200"]], 5],
    ["says lines that were put together", [["Age", "0, 0"]], 2 ** 31],
    ["says a list with something else in it", [["Age", "0,old"]], 2 ** 31],
    ["says no number", [["Age", "old"]], 2 ** 31],
    ["says too much", [["Age", "99999999999999999999"]], 2 ** 31],
  ])("%s", (_name, fields, ageS) => {
    const facts = { status: 200, fields, requestedAtMs: now - 3_000, receivedAtMs: now };
    expect(initialAge(facts)).toBe(ageS);
  });
});
