// Room for commits on a disk that has none: blocks that the WAL of a database has already, and that SQLite writes over. A file that is given back is no such room where
// somebody else is faster, and none at all where root used what a file system keeps for it: then what is freed belongs to root first.
//
// SQLite unlinks the WAL when the database is closed. A second name, `<database>.wal-room`, keeps its blocks: they are laid out as the WAL of the next opening.

import { closeSync, fsyncSync, linkSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { diskSpaceOf } from "./disk-space.ts";
import { roomAgainMs, roomFreeTimes, writeBlocks } from "./room-file.ts";

/** A WAL whose header is zeros is an empty one to SQLite: no frame of it is read again. */
const walHeaderBytes = 32;

export class WalRoom {
  readonly #wal: string;
  readonly #kept: string;
  readonly #bytes: number;
  #lookedMs = -Infinity;

  /** `database`: the file whose WAL it is; no other process and no other thread writes to it. */
  constructor(database: string, bytes: number) {
    this.#wal = `${database}-wal`;
    this.#kept = `${database}.wal-room`;
    this.#bytes = bytes;
  }

  /**
   * Lays the room of the last opening out as an empty WAL, where SQLite left none. To be called before the database is opened; where SQLite unlinked the WAL, all of it
   * is in the database. Never throws.
   */
  lay(): void {
    try {
      if (inodeOf(this.#wal) !== undefined || inodeOf(this.#kept) === undefined) return;
      const file = openSync(this.#kept, "r+");
      try {
        writeSync(file, Buffer.alloc(walHeaderBytes), 0, walHeaderBytes, 0);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      linkSync(this.#kept, this.#wal);
    } catch {
      // The disk refuses. SQLite makes a WAL of its own, if it can.
    }
  }

  /** Lets the blocks go with the WAL, which is to be set aside as it is. Throws what the disk throws. */
  leave(): void {
    rmSync(this.#kept, { force: true });
  }

  /**
   * Makes the WAL that long, unless it is, or too little would be left, and gives it the second name. Looks once a minute; to be called between transactions. Never
   * throws. SQLite reads a WAL up to the first frame that is none, and zeros are none.
   */
  take(nowMs = performance.now()): void {
    if (nowMs - this.#lookedMs < roomAgainMs) return;
    this.#lookedMs = nowMs;
    try {
      const { size } = statSync(this.#wal);
      const { free } = diskSpaceOf(dirname(this.#wal)) ?? { free: 0 };
      if (size < this.#bytes && free >= (roomFreeTimes + 1) * this.#bytes)
        writeBlocks(this.#wal, "r+", size, this.#bytes);
      if (inodeOf(this.#kept) === inodeOf(this.#wal)) return;
      rmSync(this.#kept, { force: true });
      linkSync(this.#wal, this.#kept);
    } catch {
      // The disk takes nothing, or there is no WAL yet.
    }
  }
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}
