// Which keys have no entry, in memory that all threads share: a worker that is asked for something new need not ask SQLite to hear that it is new.
//
//   int32 0   generation   0: nothing is known yet. Odd: being filled, nothing is known. Even: a key whose bit is 0 has no entry
//   int32 1…  bits         one for each key, by its hash (entry-sql.ts). A bit that is set says nothing
//
// The index thread sets the bit of a key within the transaction that stores an entry of it, so before any worker can find that entry. Bits outlive their entries.
// When the index is opened, and when too many bits are of entries that have gone, all are filled anew from the keys of the index, step by step.
//
// A worker reads the generation before the bit and after it: a bit that it read while they were filled proves nothing.
//
// An invalidation of a key that has no entry needs no index: nothing is there to be removed, and nothing can come.
//
//   what is being fetched   The worker moves the key's mark of invalidations (shared-header.ts), then reads the bit. The index thread sets the bit, then
//                           compares the mark with that of the fetch. Whichever comes first, one of the two sees what the other did.
//   a loss of power         takes back what was committed last, deletions too. An entry that a bit says is gone must not come back: a filling ends with a
//                           FULL commit, behind which all deletions that it has seen are durable.

import type { Sqlite } from "../../../base/sqlite.ts";
import type { EntryKey } from "../entry.ts";
import { keyNumber } from "./entry-sql.ts";

/** 4 MiB, of which pages are used as keys come: of 100,000 keys one new one in 300 is looked up for nothing, of a million one in 34. */
const bitsCount = 2 ** 25;
/** With more bits than this, every fourth look-up is for nothing. */
const bitsFull = bitsCount / 4;
/** The keys of a step: some milliseconds. */
const stepKeys = 10_000;

export class KeyPresence {
  readonly #words: Int32Array;
  readonly #bits: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer, 0, 1);
    this.#bits = new Int32Array(buffer, 4);
  }

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer(4 + bitsCount / 8);
  }

  /** Whether the key is known to have no entry. */
  isAbsent(key: EntryKey): boolean {
    const generation = Atomics.load(this.#words, 0);
    if (generation === 0 || generation % 2 !== 0) return false;
    const place = keyNumber(key) % bitsCount;
    if ((Atomics.load(this.#bits, place >>> 5) & (1 << (place & 31))) !== 0) return false;
    return Atomics.load(this.#words, 0) === generation;
  }

  /** From now on nothing is known. */
  beginFilling(): void {
    const generation = Atomics.load(this.#words, 0);
    // Memory that was never used is empty, and to empty it would take it up.
    const isUnused = generation === 0;
    if (generation % 2 === 0) Atomics.store(this.#words, 0, generation + 1);
    if (!isUnused) this.#bits.fill(0);
  }

  endFilling(): void {
    Atomics.add(this.#words, 0, 1);
  }

  /** Notes a key by its number; whether it was new. */
  add(number: number): boolean {
    const place = number % bitsCount;
    const mask = 1 << (place & 31);
    return (Atomics.or(this.#bits, place >>> 5, mask) & mask) === 0;
  }
}

/** Keeps the bits for one opened index. */
export class PresentKeys {
  readonly #presence: KeyPresence;
  readonly #next;
  readonly #entriesCount: () => number;
  readonly #makeDurable: () => void;
  readonly #fullBits: number;
  #bits = 0;
  /** The key up to which the index was read; undefined: all of it was. */
  #readTo: number | undefined = -1;

  /** `makeDurable`: makes all that was committed durable. `fullBits`: with so many bits set it is time to fill anew, if that takes half of them away. */
  constructor(
    presence: KeyPresence,
    db: Sqlite,
    options: {
      readonly entriesCount: () => number;
      readonly makeDurable: () => void;
      readonly fullBits?: number;
    },
  ) {
    this.#presence = presence;
    this.#entriesCount = options.entriesCount;
    this.#makeDurable = options.makeDurable;
    this.#fullBits = options.fullBits ?? bitsFull;
    this.#next = db
      .prepare<[after: number, limit: number], number>(
        "SELECT key FROM entry_key WHERE key > ? ORDER BY key LIMIT ?",
      )
      .pluck();
    presence.beginFilling();
  }

  /** To be told of every key of which an entry is stored, before the commit, and before the key's mark of invalidations is looked at. */
  add(key: EntryKey): void {
    this.#note(keyNumber(key));
  }

  /** Does one step of filling; false when there is nothing to do. Throws as SQLite does. */
  step(): boolean {
    if (this.#readTo === undefined) {
      if (this.#bits < this.#fullBits || this.#entriesCount() > this.#bits / 2) return false;
      this.#presence.beginFilling();
      this.#bits = 0;
      this.#readTo = -1;
    }
    const keys = this.#next.all(this.#readTo, stepKeys);
    for (const key of keys) this.#note(key);
    if (keys.length === stepKeys) this.#readTo = keys.at(-1);
    else {
      this.#makeDurable();
      this.#readTo = undefined;
      this.#presence.endFilling();
    }
    return true;
  }

  #note(number: number): void {
    if (this.#presence.add(number)) this.#bits++;
  }
}
