// The most frequent keys: for every key the truth lies between what is told with and without its error, merged or not.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  PackedFault,
  PackedReader,
  PackedWriter,
} from "../../../src/core/analytics/packed-bytes.ts";
import { TopKeys, topCountersMax } from "../../../src/core/analytics/space-saving.ts";

/** Few keys often, many keys seldom. */
const keys = fc.array(
  fc.oneof(
    fc.nat(5).map((no) => `often ${no}`),
    fc.nat(2_000).map((no) => `seldom ${no}`),
  ),
  { maxLength: 1_500 },
);

function topOf(stream: readonly string[]): TopKeys {
  const top = new TopKeys();
  for (const key of stream) top.add(key);
  return top;
}

function again(top: TopKeys): TopKeys {
  const to = new PackedWriter();
  top.write(to);
  return TopKeys.read(new PackedReader(to.bytes()));
}

function hold(top: TopKeys, stream: readonly string[]): void {
  const truth = new Map<string, number>();
  for (const key of stream) truth.set(key, (truth.get(key) ?? 0) + 1);
  const told = top.list();
  expect(told.length).toBeLessThanOrEqual(topCountersMax);
  expect(told.map(({ count }) => count)).toEqual(
    told.map(({ count }) => count).toSorted((a, b) => b - a),
  );
  for (const { key, count, error } of told) {
    expect(count).toBeGreaterThanOrEqual(truth.get(key) ?? 0);
    expect(count - error).toBeLessThanOrEqual(truth.get(key) ?? 0);
    expect(error).toBeLessThanOrEqual(Math.max(0, stream.length / topCountersMax));
  }
  const names = new Set(told.map(({ key }) => key));
  // Whoever came more often than any error can hide is there.
  for (const [key, count] of truth)
    if (count > stream.length / topCountersMax) expect(names).toContain(key);
}

test("of one stream", () => {
  fc.assert(
    fc.property(keys, (stream) => hold(again(topOf(stream)), stream)),
    { numRuns: 40 },
  );
});

test("of streams that are merged, in any order", () => {
  fc.assert(
    fc.property(fc.array(keys, { minLength: 1, maxLength: 4 }), (streams) => {
      const merged = new TopKeys();
      for (const stream of streams) merged.merge(again(topOf(stream)));
      hold(again(merged), streams.flat());
    }),
    { numRuns: 40 },
  );
});

test("the counter that gives way is the oldest of the least", () => {
  fc.assert(
    fc.property(keys, keys, (stream, more) => {
      // By its definition: all counters are looked at for each key that gets another's.
      const counters = new Map<string, { count: number; error: number }>();
      for (const key of [...stream, ...more]) {
        const known = counters.get(key);
        if (known !== undefined) known.count++;
        else if (counters.size < topCountersMax) counters.set(key, { count: 1, error: 0 });
        else {
          const least = Math.min(...[...counters.values()].map(({ count }) => count));
          const [oldest = ""] = [...counters].find(([, { count }]) => count === least) ?? [];
          counters.delete(oldest);
          counters.set(key, { count: least + 1, error: least });
        }
      }
      const top = again(topOf(stream));
      for (const key of more) top.add(key);
      const told = new Map(top.list().map(({ key, count, error }) => [key, { count, error }]));
      expect(told).toEqual(counters);
    }),
    { numRuns: 20 },
  );
});

test("up to 200 keys are exact", () => {
  const stream = Array.from({ length: 200 }, (_, no) =>
    Array<string>(no + 1).fill(`k${no}`),
  ).flat();
  const list = topOf(stream).list();
  expect(list).toHaveLength(200);
  expect(list[0]).toEqual({ key: "k199", count: 200, error: 0 });
});

test("bytes that none wrote are refused, and halves of surrogate pairs are one key", () => {
  const to = new PackedWriter();
  for (const value of [0, 2]) to.number(value);
  for (let no = 0; no < 2; no++) {
    to.text("same");
    to.number(1);
    to.number(0);
  }
  expect(() => TopKeys.read(new PackedReader(to.bytes()))).toThrow(PackedFault);
  expect(() => TopKeys.read(new PackedReader(new Uint8Array([0, 1])))).toThrow(PackedFault);
  expect(() => TopKeys.read(new PackedReader(new Uint8Array([0, 1, 1, 0xff, 1, 0])))).toThrow(
    PackedFault,
  );
  const top = topOf(["/\ud800", "/\udc00", "/\ud83d\ude00"]);
  expect(again(top).list()).toEqual([
    { key: "/\ufffd", count: 2, error: 0 },
    { key: "/\ud83d\ude00", count: 1, error: 0 },
  ]);
});
