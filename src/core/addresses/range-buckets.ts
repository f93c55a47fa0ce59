// Sorts ranges by address, one bucket at a time: writing them in order touches each page of an index once,
// and no step takes long.
//
// A range of IPv4 is held as one number, its address and its prefix: as objects a million of them took 200 MB,
// and their garbage as much again.

import { addressText } from "./address-text.ts";
import type { ListedRange } from "./range-list.ts";

/** Leading bits of an address that choose its bucket. */
const bits = 12;
const shiftOfSix = 128n - BigInt(bits);
/** More than a prefix of IPv4. */
const prefixes = 64;
const fourPerBucket = 2 ** (32 - bits);

/** What a range takes while it is held. Arrays that grow are half as long again as what is in them. */
const bytesOfFour = 12;
const bytesOfOther = 250;

export class RangeBuckets {
  /** Address × 64 + prefix, by leading bits of the address. */
  #four = new Map<number, number[]>();
  #others = new Map<number, ListedRange[]>();
  #bytes = 0;

  /** What is held, about. */
  get bytes(): number {
    return this.#bytes;
  }

  add(listed: ListedRange): void {
    const { family, first, last } = listed.range;
    const prefix = family === 4 ? 32 - Math.log2(Number(last - first) + 1) : NaN;
    if (Number.isInteger(prefix)) {
      const address = Number(first);
      put(this.#four, Math.floor(address / fourPerBucket), address * prefixes + prefix);
      this.#bytes += bytesOfFour;
    } else {
      put(this.#others, Number(first >> (family === 6 ? shiftOfSix : 0n)), listed);
      this.#bytes += bytesOfOther;
    }
  }

  /** Yields all ranges in order, in parts of at most `partMax`. The buckets are empty afterwards. */
  *take(partMax: number): Generator<readonly ListedRange[]> {
    let part: ListedRange[] = [];
    for (const listed of this.#ordered()) {
      part.push(listed);
      if (part.length < partMax) continue;
      yield part;
      part = [];
    }
    if (part.length > 0) yield part;
  }

  *#ordered(): Generator<ListedRange> {
    const [four, others] = [this.#four, this.#others];
    [this.#four, this.#others, this.#bytes] = [new Map(), new Map(), 0];
    const words = new Uint32Array(4);
    for (const key of sortedKeys(four)) {
      const bucket = Float64Array.from(four.get(key) ?? []).toSorted();
      four.delete(key);
      for (const one of bucket) yield listedFour(one, words);
    }
    for (const key of sortedKeys(others))
      yield* (others.get(key) ?? []).toSorted((a, b) => (a.range.first < b.range.first ? -1 : 1));
  }
}

function put<T>(buckets: Map<number, T[]>, key: number, one: T): void {
  const bucket = buckets.get(key);
  if (bucket === undefined) buckets.set(key, [one]);
  else bucket.push(one);
}

const sortedKeys = (buckets: ReadonlyMap<number, unknown>): readonly number[] =>
  [...buckets.keys()].sort((a, b) => a - b);

function listedFour(one: number, words: Uint32Array): ListedRange {
  const address = Math.floor(one / prefixes);
  const prefix = one % prefixes;
  words[0] = address;
  const text = addressText(4, words);
  const last = BigInt(address + 2 ** (32 - prefix) - 1);
  const range = { family: 4, first: BigInt(address), last } as const;
  return { text: prefix === 32 ? text : `${text}/${prefix}`, range };
}
