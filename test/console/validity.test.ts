// How long a certificate is good for.

import { expect, test } from "vitest";
import { validityOf } from "../../src/console/validity.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const from = Date.UTC(2026, 10, 1);

test.each([
  [90 * dayMs, "good", "90 days left"],
  [14 * dayMs, "good", "14 days left"],
  [14 * dayMs - 1, "warn", "13 days left"],
  [3 * dayMs, "warn", "3 days left"],
  [3 * dayMs - 1, "bad", "2 days left"],
  [dayMs, "bad", "1 day left"],
  [hourMs, "bad", "less than a day left"],
  [0, "bad", "less than a day left"],
  [-1, "bad", "expired"],
])("%d ms before its end", (leftMs, tone, text) => {
  const now = from + dayMs;
  expect(validityOf(from, now + leftMs, now)).toEqual({ tone, text });
});

test("before its beginning", () => {
  const end = from + dayMs;
  expect(validityOf(from, end, from - 1)).toEqual({ tone: "warn", text: "not valid yet" });
});
