// The stretch of time that a traffic page shows.

import fc from "fast-check";
import { expect, test } from "vitest";
import { draggedWindow, spans, windowOf } from "../../src/console/traffic-window.ts";

const nowS = 1_790_000_000;
const of = (query: string): ReturnType<typeof windowOf> =>
  windowOf(new URLSearchParams(query), nowS);

test.each(spans)("a span %s until now", (name, _title, length) => {
  expect(of(`span=${name}`)).toEqual({ since: nowS - length, until: nowS, span: name });
});

test("two moments go before a span", () => {
  expect(of("span=1h&since=100&until=200")).toEqual({ since: 100, until: 200, span: undefined });
});

test.each([
  "",
  "span=2y",
  "since=200&until=100",
  "since=100",
  "since=-5&until=100",
  "since=a&until=b",
  "since=1&until=Infinity&span=x",
])("%j is the last day, or a time that has an end", (query) => {
  const { since, until } = of(query);
  expect(since).toBeLessThan(until);
});

test("what was dragged has whole seconds, is within, and is not too short", () => {
  const time = fc.double({ min: 1e9, max: 2e9, noNaN: true });
  fc.assert(
    fc.property(time, fc.double({ min: 0, max: 1e6, noNaN: true }), (since, length) => {
      const window = draggedWindow(since, since + length);
      expect(Number.isInteger(window.since) && Number.isInteger(window.until)).toBe(true);
      expect(window.until - window.since).toBeGreaterThanOrEqual(120);
      expect(window.since).toBeLessThanOrEqual(since);
      expect(window.until).toBeGreaterThanOrEqual(since + length);
      expect(window.until - window.since).toBeLessThanOrEqual(Math.max(length, 120) + 2);
    }),
  );
});
