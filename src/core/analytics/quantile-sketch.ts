// A sketch of times whose quantiles are at most 1 % off, after DDSketch (Masson, Rim, Lee: VLDB 2019): values are
// counted in bins whose bounds grow by a constant factor. Sketches add up bin by bin, so the sketch of a day is exactly
// the sum of those of its minutes. The bins are bounded because the values are.

import { PackedFault, type PackedReader, type PackedWriter } from "./packed-bytes.ts";

const relativeError = 0.01;
const growth = (1 + relativeError) / (1 - relativeError);
const perBin = 1 / Math.log(growth);
/** Larger values count as this: 10,000 s in µs. */
export const sketchedMax = 1e10;
const binMax = binOf(sketchedMax);

/** Adds up, and stays at the largest number that is exact. */
export function cappedSum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}

function binOf(value: number): number {
  return Math.ceil(Math.log(value) * perBin);
}

/** Values are µs; below 1 µs they count as 0. */
export class QuantileSketch {
  readonly #bins = new Map<number, number>();
  #zeros = 0;
  #count = 0;
  #sum = 0;

  get count(): number {
    return this.#count;
  }

  /** The sum of the values, rounded to whole µs one by one. */
  get sum(): number {
    return this.#sum;
  }

  add(value: number): void {
    const bounded = Math.min(Math.max(Math.round(value), 0), sketchedMax);
    this.#count++;
    this.#sum = cappedSum(this.#sum, bounded);
    if (bounded < 1) this.#zeros++;
    else {
      const bin = binOf(bounded);
      this.#bins.set(bin, (this.#bins.get(bin) ?? 0) + 1);
    }
  }

  merge(other: QuantileSketch): void {
    this.#count += other.#count;
    this.#sum = cappedSum(this.#sum, other.#sum);
    this.#zeros += other.#zeros;
    for (const [bin, count] of other.#bins) this.#bins.set(bin, (this.#bins.get(bin) ?? 0) + count);
  }

  /**
   * Returns the value of rank `floor(share * (count - 1))`, at most 1 % off, for shares from 0 to 1 in rising order;
   * undefined for a sketch of nothing.
   */
  quantiles(shares: readonly number[]): readonly number[] | undefined {
    if (this.#count === 0) return undefined;
    const bins = [...this.#bins].sort(([a], [b]) => a - b);
    let seen = this.#zeros;
    let at = -1;
    return shares.map((share) => {
      const rank = Math.floor(share * (this.#count - 1));
      while (seen <= rank && at < bins.length - 1) seen += bins[++at]?.[1] ?? 0;
      const bin = bins[at]?.[0];
      return bin === undefined ? 0 : (2 * growth ** bin) / (growth + 1);
    });
  }

  write(to: PackedWriter): void {
    to.number(this.#sum);
    to.number(this.#zeros);
    to.number(this.#bins.size);
    for (const [bin, count] of this.#bins) {
      to.number(bin);
      to.number(count);
    }
  }

  /** Throws PackedFault for what no sketch wrote. */
  static read(from: PackedReader): QuantileSketch {
    const sketch = new QuantileSketch();
    sketch.#sum = from.number();
    sketch.#count = sketch.#zeros = from.number();
    for (let left = from.number(binMax + 1); left > 0; left--) {
      const bin = from.number(binMax);
      const count = from.number();
      if (count === 0 || sketch.#bins.has(bin))
        throw new PackedFault("a bin is there twice or empty");
      sketch.#bins.set(bin, count);
      sketch.#count += count;
    }
    if (!Number.isSafeInteger(sketch.#count)) throw new PackedFault("a sketch counts too much");
    return sketch;
  }
}
