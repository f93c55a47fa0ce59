// Sorts ranges by address, one bucket at a time: writing them in order touches each page of an index once,
// and no step takes long.

import type { ListedRange } from "./range-list.ts";

/** Leading bits of an address that choose its bucket. */
const bits = 12n;
const shifts = { 4: 32n - bits, 6: 128n - bits } as const;

export class RangeBuckets {
  /** The ranges by family and leading bits. */
  #buckets = new Map<number, ListedRange[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(listed: ListedRange): void {
    const { family, first } = listed.range;
    const key = Number(first >> shifts[family]) + (family === 6 ? 2 ** Number(bits) : 0);
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) this.#buckets.set(key, [listed]);
    else bucket.push(listed);
    this.#size++;
  }

  /** Yields all ranges in order, in parts of at most `partMax`. The buckets are empty afterwards. */
  *take(partMax: number): Generator<readonly ListedRange[]> {
    const buckets = this.#buckets;
    this.#buckets = new Map();
    this.#size = 0;
    let part: ListedRange[] = [];
    for (const key of [...buckets.keys()].sort((a, b) => a - b)) {
      const bucket = buckets.get(key) ?? [];
      bucket.sort((a, b) => (a.range.first < b.range.first ? -1 : 1));
      for (const listed of bucket) {
        part.push(listed);
        if (part.length === partMax) {
          yield part;
          part = [];
        }
      }
    }
    if (part.length > 0) yield part;
  }
}
