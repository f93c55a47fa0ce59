// Numbers for people, without what a process would load for them.

import fc from "fast-check";
import { expect, test } from "vitest";
import { shortNumber, sizeText, wholeNumber } from "../../src/core/quantities.ts";

test("a whole number is written as Intl writes it", () => {
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const numbers = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: -20_000, max: 20_000 }).map((half) => half / 2),
    fc.double({ min: -(2 ** 53), max: 2 ** 53, noNaN: true }),
  );
  fc.assert(
    fc.property(numbers, (value) => {
      expect(wholeNumber(value)).toBe(whole.format(value));
    }),
  );
});

test.each([
  [999, "999"],
  [1_000, "1,000"],
  [-1_234, "-1,234"],
  [2.5, "2.5"],
  [12.3456, "12.3"],
  [12_345, "12.3K"],
  [-1_200_000, "-1.2M"],
])("%d in short is %s", (value, text) => {
  expect(shortNumber(value)).toBe(text);
});

test("bytes below a thousand have no fraction", () => {
  expect([sizeText(999), sizeText(1_000), sizeText(2_097_152)]).toEqual([
    "999 B",
    "0.977 KiB",
    "2 MiB",
  ]);
});
