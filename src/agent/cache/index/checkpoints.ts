// When index.db's WAL is written back into the file. SQLite would do it within a commit of the index thread, for a tenth of a second and more; a thread of its own
// does it beside (checkpointer.ts). Background work waits meanwhile: the two at once would leave visitors none of two cores.
//
// The WAL begins anew when a commit finds all of it written back. While commits go on that is never so at the end of a run, so the index thread writes the last
// few pages back itself. A reader that stays, as a check does, holds the WAL's end: then it grows, and nothing waits for what cannot come.

import type { Sqlite } from "../../../base/sqlite.ts";

/** Pages: of the WAL, and those of them that are in the file. */
export type WalLengths = { readonly log: number; readonly checkpointed: number };

export type WriteBack = {
  /** Runs a checkpoint. Never rejects; undefined means that it failed. */
  readonly run: () => Promise<WalLengths | undefined>;
  /** A run has ended: what waited for it may go on. */
  readonly onEnd: () => void;
};

/** With so many pages to write back, 64 MiB, a run is due: until then, pages that change again and again are written once. */
const duePages = 16_384;
/** With a WAL of so many pages, 128 MiB, the index thread helps. */
const pagesMax = 32_768;
/** The most pages that the index thread writes back itself: 4 MiB, some milliseconds. */
const tailPages = 1_024;
/** At 256 MiB SQLite writes back within a commit after all: where the thread fails, or what writes so much is no background work. */
const commitPages = 65_536;

export class Checkpoints {
  readonly #db: Sqlite;
  readonly #writeBack: WriteBack;
  readonly #lengths;
  #isRunning = false;
  /** How long the WAL was when a run began that could not write all of it back: the next one waits until there is more. */
  #heldAt = 0;

  constructor(db: Sqlite, writeBack: WriteBack) {
    this.#db = db;
    this.#writeBack = writeBack;
    db.pragma(`wal_autocheckpoint = ${commitPages}`);
    this.#lengths = db.prepare<[], WalLengths>("PRAGMA wal_checkpoint(NOOP)");
  }

  /** Asked before background work: whether it has to wait until a run has ended. `isPressed`: the disk lacks room, and the file is as long as it was until the WAL is written back. */
  mustWait(isPressed = false): boolean {
    if (this.#isRunning) return true;
    const { log = 0, checkpointed = 0 } = this.#lengths.get() ?? {};
    const owed = log - checkpointed;
    const isLong = log >= pagesMax;
    if (log < this.#heldAt) this.#heldAt = 0; // It has begun anew: nobody holds it.
    if (this.#heldAt > 0 && log < this.#heldAt + duePages) return false;
    if (isLong && owed > 0 && owed <= tailPages) this.#db.pragma("wal_checkpoint(PASSIVE)");
    else if (owed > (isLong || isPressed ? tailPages : duePages)) {
      void this.#start(log);
      return true;
    }
    return false;
  }

  async #start(log: number): Promise<void> {
    this.#isRunning = true;
    const reached = await this.#writeBack.run();
    this.#isRunning = false;
    const isHeld = reached === undefined || reached.checkpointed < reached.log;
    this.#heldAt = isHeld ? log : 0;
    this.#writeBack.onEnd();
  }
}
