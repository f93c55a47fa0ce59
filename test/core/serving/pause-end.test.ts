// Times of RFC 3339, compared with those that the platform reads.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parsePauseEnd } from "../../../src/core/serving/pause-end.ts";

test("every time is read as the platform reads it, with any offset", () => {
  const time = fc.date({ min: new Date(0), max: new Date("2199-12-31"), noInvalidDate: true });
  fc.assert(
    fc.property(time, fc.integer({ min: -23, max: 23 }), fc.nat(59), (date, hours, minutes) => {
      const sign = hours < 0 ? "-" : "+";
      const two = (n: number): string => String(Math.abs(n)).padStart(2, "0");
      const text = date.toISOString().replace("Z", `${sign}${two(hours)}:${two(minutes)}`);
      expect(parsePauseEnd(text)).toBe(Date.parse(text));
      expect(parsePauseEnd(date.toISOString().toLowerCase())).toBe(date.getTime());
    }),
  );
});

test.each([
  "", "2026-11-25", "2026-11-25T12:00:00", "2026-11-25 12:00:00Z", "2026-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-00-01T00:00:00Z",
  "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00.Z",
])("%j is none", (text) => {
  expect(parsePauseEnd(text)).toBeUndefined();
}); // prettier-ignore

test("leap days are", () => {
  expect(parsePauseEnd("2028-02-29T00:00:00Z")).toBe(Date.parse("2028-02-29T00:00:00Z"));
  expect(parsePauseEnd("2000-12-31T23:59:59.25Z")).toBe(Date.parse("2000-12-31T23:59:59.250Z"));
});
