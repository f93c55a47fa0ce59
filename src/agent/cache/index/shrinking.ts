// Cuts free pages off index.db while the disk lacks room for others. Otherwise they stay: what is stored next is written into them.
//
// A file that an earlier release made cannot be cut (its auto_vacuum is off); it gives its room back when it is made anew.

import type { Sqlite } from "../../../base/sqlite.ts";

/** Pages cut off in a step: 2 MiB, some milliseconds. */
const stepPages = 512;
/** The WAL that stays while room is lacking: commits on a disk that is full have it to write into. */
const walBytesPressed = 4 * 2 ** 20;

export class Shrinking {
  readonly #db: Sqlite;
  readonly #lacking: () => number;
  readonly #pageBytes: number;
  readonly #walBytes: number;
  readonly #canCut: boolean;
  readonly #freePages;
  #wasPressed = false;

  constructor(db: Sqlite, lacking: () => number) {
    this.#db = db;
    this.#lacking = lacking;
    const number = (name: string): number => Number(db.pragma(name, { simple: true }));
    this.#pageBytes = number("page_size");
    this.#walBytes = number("journal_size_limit");
    this.#canCut = number("auto_vacuum") === 2;
    this.#freePages = db.prepare<[], number>("PRAGMA freelist_count").pluck();
  }

  get spareBytes(): number {
    return this.#canCut ? (this.#freePages.get() ?? 0) * this.#pageBytes : 0;
  }

  /** Returns whether the disk lacks room, and keeps the WAL short while it does. To be asked before each step of background work. */
  press(): boolean {
    const isPressed = this.#lacking() > 0;
    if (isPressed !== this.#wasPressed) {
      this.#wasPressed = isPressed;
      this.#db.pragma(`journal_size_limit = ${isPressed ? walBytesPressed : this.#walBytes}`);
    }
    return isPressed;
  }

  /** Cuts some pages off. Returns false when there is nothing to cut. Throws as SQLite does. */
  step(): boolean {
    if (this.spareBytes === 0) return false;
    this.#db.exec(`PRAGMA incremental_vacuum(${stepPages})`);
    // The file gets shorter when the WAL is written back; checkpoints keep what is owed short meanwhile.
    if (this.spareBytes === 0) this.#db.pragma("wal_checkpoint(PASSIVE)");
    return true;
  }
}
