// The sketch of times: each quantile is at most 2 % off, sums are those of all values, and bytes that none wrote are refused.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  PackedFault,
  PackedReader,
  PackedWriter,
} from "../../../src/core/analytics/packed-bytes.ts";
import { QuantileSketch, sketchedMax } from "../../../src/core/analytics/quantile-sketch.ts";

const times = fc.array(
  fc.oneof(fc.nat(50), fc.nat(100_000), fc.nat(sketchedMax), fc.constant(0), fc.constant(1)),
  { minLength: 1, maxLength: 300 },
);
const shares = [0, 0.5, 0.95, 0.99, 1];

function sketchOf(values: readonly number[]): QuantileSketch {
  const sketch = new QuantileSketch();
  for (const value of values) sketch.add(value);
  return sketch;
}

function written(sketch: QuantileSketch): Uint8Array {
  const to = new PackedWriter();
  sketch.write(to);
  return to.bytes();
}

test("each quantile is at most 2 % off", () => {
  fc.assert(
    fc.property(times, (values) => {
      const sorted = values.toSorted((a, b) => a - b);
      const told = sketchOf(values).quantiles(shares) ?? [];
      for (const [no, share] of shares.entries()) {
        const exact = sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
        expect(Math.abs((told[no] ?? NaN) - exact)).toBeLessThanOrEqual(0.02 * exact);
      }
    }),
  );
});

test("what is merged, in whatever pieces, written and read, is what was added at once", () => {
  fc.assert(
    fc.property(fc.array(times, { minLength: 1, maxLength: 5 }), (pieces) => {
      const merged = new QuantileSketch();
      for (const piece of pieces) {
        const read = QuantileSketch.read(new PackedReader(written(sketchOf(piece))));
        merged.merge(read);
      }
      const all = pieces.flat();
      const whole = sketchOf(all);
      expect([merged.count, merged.sum]).toEqual([all.length, all.reduce((a, b) => a + b, 0)]);
      expect(merged.quantiles(shares)).toEqual(whole.quantiles(shares));
    }),
  );
});

test("values without bounds are bounded, and so are the bytes", () => {
  const sketch = new QuantileSketch();
  for (let value = 0.1; value < 1e300; value *= 1.005) sketch.add(value);
  sketch.add(-5);
  sketch.add(Infinity);
  expect(sketch.quantiles([0])).toEqual([0]);
  const [largest = 0] = sketch.quantiles([1]) ?? [];
  expect(Math.abs(largest / sketchedMax - 1)).toBeLessThan(0.02);
  expect(written(sketch).byteLength).toBeLessThan(8_000);
  expect(new QuantileSketch().quantiles(shares)).toBeUndefined();
});

test("bytes that no sketch wrote are refused, or are another sketch; nothing else happens", () => {
  fc.assert(
    fc.property(times, fc.nat(), fc.integer({ min: 1, max: 255 }), (values, place, change) => {
      const bytes = written(sketchOf(values));
      const at = place % bytes.byteLength;
      bytes[at] = ((bytes[at] ?? 0) + change) % 256;
      try {
        const read = QuantileSketch.read(new PackedReader(bytes));
        expect(Number.isSafeInteger(read.count)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(PackedFault);
      }
      const torn = written(sketchOf(values)).slice(0, -1);
      expect(() => QuantileSketch.read(new PackedReader(torn))).toThrow(PackedFault);
    }),
  );
});

test("bins are read in any order, as they were written before they were kept in order", () => {
  const inOrder = (bins: readonly (readonly [number, number])[]): QuantileSketch => {
    const to = new PackedWriter();
    for (const value of [5_000, 0, bins.length, ...bins.flat()]) to.number(value);
    return QuantileSketch.read(new PackedReader(to.bytes()));
  };
  const bins = fc.uniqueArray(fc.tuple(fc.nat(1_000), fc.integer({ min: 1, max: 9 })), {
    selector: ([bin]) => bin,
    minLength: 1,
  });
  fc.assert(
    fc.property(bins, (some) => {
      const sorted = some.toSorted(([a], [b]) => a - b);
      expect(written(inOrder(some))).toEqual(written(inOrder(sorted)));
      expect(inOrder(some).quantiles(shares)).toEqual(inOrder(sorted).quantiles(shares));
    }),
  );
});
