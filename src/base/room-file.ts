// A file that keeps room on a disk for those who must be able to write when it is full: it is given back piece by piece, and taken again when there is enough.
//
// Where several programs fill a disk at once another may be faster than who was meant to have it: so it goes in pieces, and the last resort is the warning.

import { closeSync, fsyncSync, openSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "../core/faults.ts";
import { diskSpaceOf } from "./disk-space.ts";

const pieceBytes = 2 ** 20;
/** Room is taken only where this many times as much stays free. */
export const roomFreeTimes = 4;
/** The shortest time between tries to take it again. */
export const roomAgainMs = 60_000;

export class RoomFile {
  readonly #path: string;
  readonly #bytes: number;
  #lookedMs = -Infinity;

  constructor(path: string, bytes: number) {
    this.#path = path;
    this.#bytes = bytes;
  }

  /** Takes the room unless it is taken, or too little would be left. Looks once a minute. Never throws. */
  take(nowMs = performance.now()): void {
    if (nowMs - this.#lookedMs < roomAgainMs) return;
    this.#lookedMs = nowMs;
    try {
      const held = this.#held();
      if (held >= this.#bytes) return;
      const { free = 0 } = diskSpaceOf(dirname(this.#path)) ?? {};
      if (free < (roomFreeTimes + 1) * this.#bytes) return;
      writeBlocks(this.#path, "w", 0, this.#bytes);
    } catch {
      // Without it everything works as on a disk where others were faster.
    }
  }

  /** Gives a piece back. Returns false when none is left. */
  give(): boolean {
    try {
      const held = this.#held();
      if (held === 0) return false;
      if (held <= pieceBytes) rmSync(this.#path);
      else truncateSync(this.#path, held - pieceBytes);
      return true;
    } catch {
      return false;
    }
  }

  #held(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }
}

/** Writes zeros from `from` to `to`, durably: blocks, for a hole in a file keeps no room. `flags`: as open(2) takes them. */
export function writeBlocks(path: string, flags: "w" | "r+", from: number, to: number): void {
  const file = openSync(path, flags, 0o600);
  try {
    const piece = Buffer.alloc(pieceBytes);
    for (let at = from; at < to;)
      at += writeSync(file, piece, 0, Math.min(pieceBytes, to - at), at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Runs an action; where it fails because the disk is full, again in the room that is kept. The action must have no effect when it fails. */
export function inRoomOf<T>(room: RoomFile, action: () => T): T {
  for (;;) {
    try {
      return action();
    } catch (error) {
      if (systemCode(error) !== "SQLITE_FULL" || !room.give()) throw error;
    }
  }
}
