// Figures and times as people read them.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  bitRate,
  byteCount,
  count,
  distance,
  moment,
  periodText,
  writtenMs,
  percent,
  seconds,
  several,
  shortCount,
} from "../../src/console/words.ts";

test("counts", () => {
  expect(count(1_234_567)).toBe("1,234,567");
  expect(shortCount(9_999)).toBe("9,999");
  expect(shortCount(12_345)).toBe("12.3K");
  expect(shortCount(2_500_000_000)).toBe("2.5B");
  expect(shortCount(0.012_345)).toBe("0.0123");
  expect(several(1, "host")).toBe("1 host");
  expect(several(0, "host")).toBe("0 hosts");
  expect(several(2, "address", "addresses")).toBe("2 addresses");
});

test.each([
  [0, 0, "–"],
  [0, 10, "0 %"],
  [10, 10, "100 %"],
  [1, 3, "33.3 %"],
  [999, 1_000, "99.9 %"],
  [99_999, 100_000, "> 99.9 %"],
  [1, 100_000, "< 0.1 %"],
])("%d of %d", (part, of, text) => {
  expect(percent(part, of)).toBe(text);
});

test("only all is 100 percent, and only nothing is 0", () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (a, b) => {
      const [part, of] = [Math.min(a, b), Math.max(a, b) + 1];
      const text = percent(part, of);
      expect(text.startsWith("100")).toBe(false);
      expect(text === "0 %" || text === "0.0 %").toBe(part === 0);
    }),
  );
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_024, "1 KiB"],
  [1_536, "1.5 KiB"],
  [5 * 1_048_576, "5 MiB"],
  [2 ** 60, "1020 PiB"],
])("%d bytes", (value, text) => {
  expect(byteCount(value)).toBe(text);
});

test.each([
  [0, "0 bit/s"],
  [100, "800 bit/s"],
  [125, "1 kbit/s"],
  [1_250_000, "10 Mbit/s"],
  [125_000_000, "1 Gbit/s"],
  [125_000_000_000, "1 Tbit/s"],
])("%d bytes a second", (value, text) => {
  expect(bitRate(value)).toBe(text);
});

test.each([
  [0, "0 s"],
  [0.000_25, "250 µs"],
  [0.012_34, "12.3 ms"],
  [1.5, "1.5 s"],
  [119, "119 s"],
  [120, "2 min"],
  [7_200, "2 h"],
  [172_800, "2 days"],
])("%d seconds", (value, text) => {
  expect(seconds(value)).toBe(text);
});

test("a moment of today has no date, and one of another year has its year", () => {
  const now = new Date(2026, 10, 28, 20, 0, 0).getTime();
  expect(moment(new Date(2026, 10, 28, 8, 5, 9).getTime(), now)).toBe("08:05:09");
  expect(moment(new Date(2026, 0, 2, 8, 5, 9).getTime(), now)).toBe("2 Jan, 08:05:09");
  expect(moment(new Date(2025, 0, 2, 8, 5, 9).getTime(), now)).toBe("2 Jan 2025, 08:05:09");
});

test("a range of two days names both, and one of one day names it once", () => {
  const at = (day: number, hour: number) => new Date(2026, 10, day, hour).getTime();
  expect(periodText(at(28, 1), at(29, 2))).toMatch(/^28 Nov, 01:00\s–\s29 Nov, 02:00$/);
  expect(periodText(at(28, 1), at(28, 2))).toBe("28 Nov, 01:00–02:00");
});

test("a moment of an address is read as seconds or ISO 8601, and is none otherwise", () => {
  expect(writtenMs("1795000000")).toBe(1_795_000_000_000);
  expect(writtenMs("2026-11-29T01:20:00Z")).toBe(Date.UTC(2026, 10, 29, 1, 20));
  expect([writtenMs("abc"), writtenMs("99999999999999")]).toEqual([NaN, NaN]);
});

test("how far away a moment is", () => {
  const now = Date.UTC(2026, 10, 28);
  expect(distance(now - 4_000, now)).toBe("now");
  expect(distance(now - 60_000, now)).toBe("60 s ago");
  expect(distance(now + 3 * 86_400_000, now)).toBe("in 3 days");
});
