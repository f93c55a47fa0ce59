// Room for commits on a disk that has none: blocks that the WAL of a database has already, and that SQLite writes over. A file that is given back is no such room where
// somebody else is faster, and none at all where root used what a file system keeps for it: then what is freed belongs to root first.

import { statSync } from "node:fs";
import { dirname } from "node:path";
import { diskSpaceOf } from "./disk-space.ts";
import { roomAgainMs, roomFreeTimes, writeBlocks } from "./room-file.ts";

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
    if (nowMs - this.#lookedMs < roomAgainMs) return;
    this.#lookedMs = nowMs;
    try {
      const { size } = statSync(this.#path);
      const { free } = diskSpaceOf(dirname(this.#path)) ?? { free: 0 };
      if (size < this.#bytes && free >= (roomFreeTimes + 1) * this.#bytes)
        writeBlocks(this.#path, "r+", size, this.#bytes);
    } catch {
      // The disk takes nothing, or there is no WAL yet.
    }
  }
}
