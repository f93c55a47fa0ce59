// How old a response is, when it comes in and later.

import { describe, expect, it } from "vitest";
import type { Field } from "../../src/core/http-fields.ts";
import { currentAgeS, initialAge, isFresh } from "../../src/core/http-age.ts";

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
    ["says a list", [["Age", "0, 0"]], 2 ** 31],
    ["says no number", [["Age", "old"]], 2 ** 31],
    ["says too much", [["Age", "99999999999999999999"]], 2 ** 31],
  ])("%s", (_name, fields, ageS) => {
    const facts = { status: 200, fields, requestedAtMs: now - 3_000, receivedAtMs: now };
    expect(initialAge(facts)).toBe(ageS);
  });
});
