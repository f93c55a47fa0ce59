// A sketch of times whose quantiles are at most 1 % off, after DDSketch (Masson, Rim, Lee: VLDB 2019): values are
// counted in bins whose bounds grow by a constant factor. Sketches add up bin by bin, so the sketch of a day is exactly
// the sum of those of its minutes. The bins are bounded because the values are.
//
// In memory the bins lie beside each other, empty ones included, from the lowest to the highest that was counted: times of one domain lie close
// together, and reading, adding and searching are what numbers spend their time with.

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
  /** The counts of the bins from `#first` on. */
  #bins: number[] = [];
  #first = 0;
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
    else this.#addTo(binOf(bounded), 1);
  }

  merge(other: QuantileSketch): void {
    this.#count += other.#count;
    this.#sum = cappedSum(this.#sum, other.#sum);
    this.#zeros += other.#zeros;
    const others = other.#bins;
    if (others.length === 0) return;
    this.#reach(other.#first + others.length - 1);
    const from = this.#reach(other.#first);
    const bins = this.#bins;
    for (let at = 0; at < others.length; at++)
      bins[from + at] = (bins[from + at] ?? 0) + (others[at] ?? 0);
  }

  /**
   * Returns the value of rank `floor(share * (count - 1))`, at most 1 % off, for shares from 0 to 1 in rising order;
   * undefined for a sketch of nothing.
   */
  quantiles(shares: readonly number[]): readonly number[] | undefined {
    if (this.#count === 0) return undefined;
    let seen = this.#zeros;
    let at = -1;
    return shares.map((share) => {
      const rank = Math.floor(share * (this.#count - 1));
      while (seen <= rank && at < this.#bins.length - 1) seen += this.#bins[++at] ?? 0;
      return at < 0 ? 0 : (2 * growth ** (this.#first + at)) / (growth + 1);
    });
  }

  write(to: PackedWriter): void {
    to.number(this.#sum);
    to.number(this.#zeros);
    let filled = 0;
    for (const count of this.#bins) if (count > 0) filled++;
    to.number(filled);
    let bin = this.#first;
    for (const count of this.#bins) {
      if (count > 0) {
        to.number(bin);
        to.number(count);
      }
      bin++;
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
      if (count === 0 || sketch.#addTo(bin, count) !== count)
        throw new PackedFault("a bin is there twice or empty");
      sketch.#count += count;
    }
    if (!Number.isSafeInteger(sketch.#count)) throw new PackedFault("a sketch counts too much");
    return sketch;
  }

  /** Adds to a bin, and returns what it counts then. */
  #addTo(bin: number, count: number): number {
    const at = this.#reach(bin);
    const sum = (this.#bins[at] ?? 0) + count;
    this.#bins[at] = sum;
    return sum;
  }

  /** Makes room for a bin, and returns its place. */
  #reach(bin: number): number {
    if (this.#bins.length === 0) this.#first = bin;
    if (bin < this.#first) {
      this.#bins = [...Array<number>(this.#first - bin).fill(0), ...this.#bins];
      this.#first = bin;
    }
    const at = bin - this.#first;
    while (this.#bins.length <= at) this.#bins.push(0);
    return at;
  }
}
