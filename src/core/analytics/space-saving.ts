// The most frequent keys of a stream in 200 counters, after Space-Saving (Metwally, Agrawal, El Abbadi: ICDT 2005). A
// counter that gives way to a new key hands its count on, and the error of each count is told.
//
// Invariants, for every key: the true count is at most `count` and at least `count - error`; a key that has no counter
// came at most `#floor` times.

import { PackedFault, type PackedReader, type PackedWriter } from "./packed-bytes.ts";

export const topCountersMax = 200;

export type TopCount = {
  readonly key: string;
  readonly count: number;
  /** The key came at least `count - error` times. */
  readonly error: number;
};

type Counter = { count: number; error: number };

export class TopKeys {
  readonly #counters = new Map<string, Counter>();
  #floor = 0;
  /** The keys that had the least count when they were looked for, the oldest last; those that came since have another count. */
  #least: { readonly count: number; readonly keys: string[] } = { count: 0, keys: [] };

  add(told: string): void {
    // Halves of surrogate pairs have no UTF-8: written and read again, two keys would be one.
    const key = told.toWellFormed();
    const known = this.#counters.get(key);
    if (known !== undefined) {
      known.count++;
      return;
    }
    if (this.#counters.size >= topCountersMax) this.#giveWay();
    this.#counters.set(key, { count: this.#floor + 1, error: this.#floor });
  }

  /** Adds what another one counted; the errors add up, and the invariants hold for the sum. */
  merge(other: TopKeys): void {
    this.#least = { count: 0, keys: [] };
    for (const [key, counter] of this.#counters) {
      const { count, error } = other.#counters.get(key) ?? {
        count: other.#floor,
        error: other.#floor,
      };
      counter.count += count;
      counter.error += error;
    }
    for (const [key, { count, error }] of other.#counters)
      if (!this.#counters.has(key))
        this.#counters.set(key, { count: count + this.#floor, error: error + this.#floor });
    this.#floor += other.#floor;
    this.#cut();
  }

  /** Returns the counters, the most frequent first; keys of the same count in the order of their characters. */
  list(): readonly TopCount[] {
    return [...this.#counters]
      .map(([key, { count, error }]) => ({ key, count, error }))
      .sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1));
  }

  write(to: PackedWriter): void {
    to.number(this.#floor);
    to.number(this.#counters.size);
    for (const [key, { count, error }] of this.#counters) {
      to.text(key);
      to.number(count);
      to.number(error);
    }
  }

  /** Throws PackedFault for what none wrote. */
  static read(from: PackedReader): TopKeys {
    const top = new TopKeys();
    top.#floor = from.number();
    for (let left = from.number(topCountersMax); left > 0; left--) {
      const key = from.text();
      const count = from.number();
      const error = from.number(count);
      if (top.#counters.has(key)) throw new PackedFault("a key is there twice");
      top.#counters.set(key, { count, error });
    }
    return top;
  }

  /** Leaves the counters with which `list` begins, without sorting all of them by their keys. */
  #cut(): void {
    if (this.#counters.size <= topCountersMax) return;
    const counts = Float64Array.from(this.#counters.values(), ({ count }) => count).sort();
    const least = counts[counts.length - topCountersMax] ?? 0;
    const tied: string[] = [];
    let kept = 0;
    for (const [key, { count }] of this.#counters)
      if (count > least) kept++;
      else if (count === least) tied.push(key);
      else this.#drop(key, count);
    const over = tied.length - (topCountersMax - kept);
    if (over > 0) for (const key of tied.toSorted().slice(-over)) this.#drop(key, least);
  }

  #drop(key: string, count: number): void {
    this.#counters.delete(key);
    this.#floor = Math.max(this.#floor, count);
  }

  /** Removes the oldest of the counters that have the least count. */
  #giveWay(): void {
    let key = this.#nextLeast();
    if (key === undefined) {
      this.#findLeast();
      key = this.#nextLeast();
    }
    if (key === undefined) return;
    this.#drop(key, this.#least.count);
  }

  /** Counts only grow, and new ones are larger than the least: what still has it is the least. */
  #nextLeast(): string | undefined {
    const { count, keys } = this.#least;
    for (let key = keys.pop(); key !== undefined; key = keys.pop())
      if (this.#counters.get(key)?.count === count) return key;
    return undefined;
  }

  #findLeast(): void {
    let least = Infinity;
    for (const { count } of this.#counters.values()) least = Math.min(least, count);
    const keys: string[] = [];
    for (const [key, { count }] of this.#counters) if (count === least) keys.push(key);
    this.#least = { count: least, keys: keys.toReversed() };
  }
}
