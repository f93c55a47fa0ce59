// Keys of entries that are gone, on their way out of entry_key. Keys are hashes: an index kept with the rows would have each row that goes change a page of its own,
// which was most of what a deletion wrote. So rows go without their keys, and the keys follow in the order of their pages, hundreds to a page.
//
// A key without its entry finds nothing and harms nobody. What a crash leaves of them is found by going through all keys once.

import { keyBytes, type EntrySql, type KeyRow } from "./entry-sql.ts";

/** Keys are spread evenly: of a million on their way out 4,000 are of one bucket, and stand in a few pages. */
const buckets = 256;
const bucketSpan = 2 ** (8 * keyBytes) / buckets;
/** The keys of a step: some 5 ms. */
const stepKeys = 2_000;
/** The most that wait, at some 40 bytes each. Beyond that, they go before more rows do. */
const waitingMax = 1_000_000;

export class StaleKeys {
  readonly #sql: Pick<EntrySql, "removeKey" | "keysFrom">;
  readonly #buckets: KeyRow[][] = Array.from({ length: buckets }, () => []);
  #count = 0;
  /** The rows of the transaction in progress. */
  #pending: KeyRow[] = [];
  /** Up to where all keys were looked through; undefined: no need to. */
  #lookedTo: KeyRow | undefined;

  /** `mayHaveStrays`: there are more keys than entries. */
  constructor(sql: Pick<EntrySql, "removeKey" | "keysFrom">, mayHaveStrays: boolean) {
    this.#sql = sql;
    if (mayHaveStrays) this.#lookedTo = { key: -1, id: -1 };
  }

  get isFull(): boolean {
    return this.#count >= waitingMax;
  }

  get isEmpty(): boolean {
    return this.#count === 0 && this.#lookedTo === undefined;
  }

  /** Adds keys, within the transaction that deletes the rows. */
  add(rows: readonly KeyRow[]): void {
    for (const { key, id } of rows) this.#pending.push({ key, id });
  }

  settle(committed: boolean): void {
    if (committed) for (const row of this.#pending) this.#keep(row);
    this.#pending = [];
  }

  /** Does one step. `commit` runs in a transaction; where it throws, nothing is forgotten. */
  step(commit: (action: () => void) => void): void {
    if (this.#count === 0) {
      this.#lookOn();
      return;
    }
    const taken = this.#next();
    commit(() => {
      for (const { bucket, from } of taken)
        for (const { key, id } of bucket.slice(from)) this.#sql.removeKey.run(key, id);
    });
    for (const { bucket, from } of taken) this.#count -= bucket.splice(from).length;
  }

  /** Returns keys from whole buckets, so that they are neighbours. */
  #next(): { readonly bucket: KeyRow[]; readonly from: number }[] {
    const taken = [];
    let rest = stepKeys;
    for (const bucket of this.#buckets) {
      if (bucket.length === 0) continue;
      const from = Math.max(0, bucket.length - rest);
      taken.push({ bucket, from });
      rest -= bucket.length - from;
      if (rest === 0) break;
    }
    return taken;
  }

  #keep(row: KeyRow): void {
    this.#buckets[Math.floor(row.key / bucketSpan)]?.push(row);
    this.#count++;
  }

  #lookOn(): void {
    const from = this.#lookedTo;
    if (from === undefined) return;
    const rows = this.#sql.keysFrom.all(from.key, from.id, stepKeys);
    for (const { key, id, isStray } of rows) if (isStray === 1) this.#keep({ key, id });
    this.#lookedTo = rows.length < stepKeys ? undefined : rows.at(-1);
  }
}
