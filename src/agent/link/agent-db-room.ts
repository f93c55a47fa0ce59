// What agent.db needs on a disk that has nothing left: room for commits, in its WAL and beside it, and pages in the file itself.

import { isDiskFault, type Sqlite, type Transact } from "../../base/sqlite.ts";
import { inRoomOf, RoomFile } from "../../base/room-file.ts";
import { WalRoom } from "../../base/wal-room.ts";

/**
 * The room that is kept on disk for the journal: clears are recorded there, some hundred bytes each, on a disk that is full. So much is in the WAL, and as much in a file
 * that is given back, for where a checkpoint needs more.
 */
const roomBytes = 4 * 2 ** 20;

/** Half of the room in the WAL: a large commit has the other half. */
export const checkpointPages = 512;
/** The pages that agent.db keeps free: a checkpoint on a full disk needs them, and the WAL is not begun anew before all of it is in the file. */
const pagesAhead = 64;

/**
 * Keeps pages free in the file, each with a block. They are written once and freed in a commit of its own, for pages that are freed in the commit that made them are
 * holes. Does nothing where the disk refuses.
 */
export function keepPages(sqlite: Sqlite): void {
  forgetPages(sqlite); // Of a process that ended between the two commits.
  const free = Number(sqlite.pragma("freelist_count", { simple: true }));
  if (free >= pagesAhead / 2) return;
  const pageBytes = Number(sqlite.pragma("page_size", { simple: true }));
  try {
    sqlite
      .prepare<[string, number]>("INSERT INTO document (key, value) VALUES (?, hex(zeroblob(?)))")
      .run(pagesKey, (pagesAhead * pageBytes) / 2);
    sqlite.pragma("wal_checkpoint(PASSIVE)");
  } catch (error) {
    if (!isDiskFault(error)) throw error;
  } finally {
    forgetPages(sqlite);
  }
}

const pagesKey = "pages kept free";

function forgetPages(sqlite: Sqlite): void {
  try {
    sqlite.prepare<[string]>("DELETE FROM document WHERE key = ?").run(pagesKey);
  } catch (error) {
    if (!isDiskFault(error)) throw error;
  }
}

export const roomInWal = (path: string): WalRoom => new WalRoom(path, roomBytes);

/** Runs transactions with room kept for them on the disk of the file. */
export function committingInRoom(path: string, commit: Transact): Transact {
  const inWal = roomInWal(path);
  const room = new RoomFile(`${path}.room`, roomBytes);
  const take = (): void => {
    inWal.take();
    room.take();
  };
  take();
  return (action) => {
    const result = inRoomOf(room, () => commit(action));
    take();
    return result;
  };
}
