// HTTP dates against the platform's calendar.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatHttpDate, parseHttpDate } from "../../../src/core/http/http-date.ts";

describe("HTTP dates", () => {
  it("are written as the platform writes them and read back", () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }), (second) => {
        const text = formatHttpDate(second * 1_000 + 999);
        expect(text).toBe(new Date(second * 1_000).toUTCString());
        expect(parseHttpDate(text)).toBe(second * 1_000);
      }),
    );
  });

  it.each([
    ["Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777_000],
    ["Sun Nov  6 08:49:37 1994", 784_111_777_000],
    ["Sunday, 06-Nov-24 08:49:37 GMT", Date.UTC(2024, 10, 6, 8, 49, 37)],
    ["Sun, 06 Nov 1994 08:49:37 UTC", undefined],
    ["Sun, 06 Now 1994 08:49:37 GMT", undefined],
    ["Sun, 06 anF 1994 08:49:37 GMT", undefined],
    ["Sun, 00 Nov 1994 08:49:37 GMT", undefined],
    ["0", undefined],
    ["", undefined],
  ])("%s", (text, ms) => {
    expect(parseHttpDate(text)).toBe(ms);
  });
});
