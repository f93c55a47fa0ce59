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
    for (const { key, count } of this.list().slice(topCountersMax)) {
      this.#counters.delete(key);
      this.#floor = Math.max(this.#floor, count);
    }
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

  #giveWay(): void {
    let least: string | undefined;
    let count = Infinity;
    for (const [key, counter] of this.#counters)
      if (counter.count < count) {
        least = key;
        count = counter.count;
      }
    if (least === undefined) return;
    this.#counters.delete(least);
    this.#floor = Math.max(this.#floor, count);
  }
}
