// Counts of requests: they add up in whatever pieces, are read as they were written, and stay bounded.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { PackedFault } from "../../../src/core/analytics/packed-bytes.ts";
import {
  RequestCounts,
  tallies,
  talliedNamesMax,
  type CountedRequest,
} from "../../../src/core/analytics/request-counts.ts";
import { bucketOf, usualFineness } from "../../../src/core/analytics/time-buckets.ts";

const request: fc.Arbitrary<CountedRequest> = fc.record({
  response_status: fc.integer({ min: 0, max: 999 }),
  bytes_sent: fc.nat(1e9),
  backend_time: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 20, noNaN: true })),
  duration: fc.double({ min: 0, max: 40, noNaN: true }),
  cache: fc.constantFrom("hit", "miss", "stale", "pass", "blocked", "none"),
  verdict: fc.constantFrom("none", "allow not-a-bot", "block bad-set"),
  bot: fc.oneof(fc.constant(null), fc.string({ unit: "grapheme", maxLength: 8 })),
});

function sum(requests: readonly CountedRequest[]): RequestCounts {
  const counts = new RequestCounts();
  for (const one of requests) counts.add(one);
  return counts;
}

test("pieces that are written, read and merged are what was added at once", () => {
  fc.assert(
    fc.property(fc.array(fc.array(request, { maxLength: 20 }), { maxLength: 6 }), (pieces) => {
      const merged = new RequestCounts();
      for (const piece of pieces) merged.merge(RequestCounts.of(sum(piece).bytesOf()));
      const all = pieces.flat();
      expect(merged.requests).toBe(all.length);
      expect(merged.hits).toBe(all.filter(({ cache }) => /hit|stale/.test(cache)).length);
      expect(merged.bytes).toBe(all.reduce((bytes, one) => bytes + one.bytes_sent, 0));
      expect(merged.origin.count).toBe(all.filter((one) => one.backend_time > 0).length);
      const total = (counts: RequestCounts, name: (typeof tallies)[number]): number =>
        [...counts.by[name].values()].reduce((a, b) => a + b, 0);
      for (const name of ["status", "cache", "verdict"] as const)
        expect(total(merged, name)).toBe(all.length);
      expect(total(merged, "reason")).toBe(all.filter((one) => one.verdict !== "none").length);
    }),
  );
});

test("of the tallies only those are read that are wanted, and all else as it is", () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 30 }), (requests) => {
      const packed = sum(requests).bytesOf();
      const whole = RequestCounts.of(packed);
      for (const wanted of [[], ["status"], ["bot", "cache"]] as const) {
        const read = RequestCounts.of(packed, wanted);
        const by = { ...whole.by };
        for (const name of tallies)
          if (!wanted.some((one) => one === name)) by[name] = new Map<string, number>();
        expect(read).toEqual(Object.assign(RequestCounts.of(packed), { by }));
      }
    }),
  );
});

test("names beyond the first count as other, and sums stay exact numbers", () => {
  const plain = {
    response_status: 200,
    backend_time: 0,
    duration: 1,
    cache: "hit",
    verdict: "allow vip",
  };
  const counts = sum(
    Array.from({ length: 500 }, (_, no) => ({
      ...plain,
      bytes_sent: Number.MAX_SAFE_INTEGER,
      bot: `bot ${no}`,
    })),
  );
  expect(counts.by.bot.size).toBe(talliedNamesMax + 1);
  expect(counts.by.bot.get("other")).toBe(500 - talliedNamesMax);
  expect([...counts.by.verdict, ...counts.by.reason]).toEqual([
    ["allow", 500],
    ["vip", 500],
  ]);
  expect(RequestCounts.of(counts.bytesOf()).bytes).toBe(Number.MAX_SAFE_INTEGER);
});

test("bytes that are torn, longer or of another format are refused", () => {
  const bytes = sum([]).bytesOf();
  const other = bytes.slice();
  other[0] = 9;
  for (const bad of [bytes.slice(0, -1), new Uint8Array([...bytes, 0]), other, new Uint8Array()])
    expect(() => RequestCounts.of(bad)).toThrow(PackedFault);
});

test("spans begin at whole minutes, hours and days, and a view of any length has some 400 at most", () => {
  const at = Date.parse("2030-01-15T12:34:56.7Z") / 1_000;
  const text = (seconds: number): string => new Date(seconds * 1_000).toISOString();
  expect(text(bucketOf(at, "minute"))).toBe("2030-01-15T12:34:00.000Z");
  expect(text(bucketOf(at, "hour"))).toBe("2030-01-15T12:00:00.000Z");
  expect(text(bucketOf(at, "day"))).toBe("2030-01-15T00:00:00.000Z");
  expect([3_600, 86_400, 90 * 86_400].map(usualFineness)).toEqual(["minute", "hour", "day"]);
});
