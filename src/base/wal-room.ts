// Room for commits on a disk that has none: blocks that the WAL of a database has already, and that SQLite writes over. A file that is given back is no such room where
// somebody else is faster, and none at all where root used what a file system keeps for it: then what is freed belongs to root first.

import { closeSync, fsyncSync, openSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { diskSpaceOf } from "./disk-space.ts";

/** The room is taken only where this many times as much stays free. */
const freeTimes = 4;
/** The shortest time between looks. */
const againMs = 60_000;
const zeros = Buffer.alloc(2 ** 20);

export class WalRoom {
  readonly #path: string;
  readonly #bytes: number;
  #lookedMs = -Infinity;

  /** `database`: the file whose WAL it is; no other process and no other thread writes to it. */
  constructor(database: string, bytes: number) {
    this.#path = `${database}-wal`;
    this.#bytes = bytes;
  }

  /**
   * Makes the WAL that long, unless it is, or too little would be left. Looks once a minute; to be called between transactions. Never throws. SQLite reads a WAL up
   * to the first frame that is none, and zeros are none.
   */
  take(nowMs = performance.now()): void {
    if (nowMs - this.#lookedMs < againMs) return;
    this.#lookedMs = nowMs;
    try {
      const { size } = statSync(this.#path);
      const { free } = diskSpaceOf(dirname(this.#path)) ?? { free: 0 };
      if (size < this.#bytes && free >= (freeTimes + 1) * this.#bytes) this.#fill(size);
    } catch {
      // The disk takes nothing, or there is no WAL yet.
    }
  }

  /** Writes blocks: a hole keeps no room. */
  #fill(from: number): void {
    const file = openSync(this.#path, "r+");
    try {
      for (let at = from; at < this.#bytes;)
        at += writeSync(file, zeros, 0, Math.min(zeros.byteLength, this.#bytes - at), at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
}
