// cache/index.db: what is cached, its FTS5 index, and every clear that still matters. One writer, the index thread; workers and the matcher only read.
//
//   state       one row. clear_no: newest number given to a clear or an invalidation, never given twice. floor_no: below it clears are no longer
//               remembered one by one. cursor_seq: journal seq of the newest clear applied here. boot_id, clean: whose writes may be torn.
//   entry       one row a stored response (variant). Ids ascend and are never reused. object: name of the body's file, null without a body.
//   entry_text  FTS5 over entry: rowid = entry.id; columns by core/index-schema.ts. Derived, rebuilt from entry.
//   clear       one row a clear. patterns: JSON list, null means everything in scope; widened means the same. phase: 0 recorded (the guard knows it),
//               1 applied (ids holds the runs of what it made unservable; durable), 2 gone (rows and objects deleted, ids null).
//
// An entry is servable iff no clear with clear_no > source_no matches it. Rows of phase 1 clears are unservable after a restart by their ids alone.
// Fills commit with synchronous=NORMAL, clears with FULL. SQLite's WAL survives as a prefix: whatever survives of it, every earlier commit does too.

import { rmSync, renameSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ensureDirectory, syncDirectory } from "../../base/durable-file.ts";
import { migrate, openSqlite, type Sqlite, type SyncLevel } from "../../base/sqlite.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import { createTextIndexSql } from "../../core/index-schema.ts";
import { idSpanMax } from "./servable-bits.ts";
import { isDamage, rebuildText, textIsWhole } from "./text-index.ts";

const tables = `
  CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), clear_no INTEGER NOT NULL, floor_no INTEGER NOT NULL,
    cursor_seq INTEGER NOT NULL, boot_id TEXT NOT NULL, clean INTEGER NOT NULL
  ) STRICT;
  INSERT INTO state VALUES (1, 0, 0, 0, '', 0);

  CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    domain TEXT NOT NULL, host TEXT NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, query TEXT NOT NULL,
    vary TEXT NOT NULL, mime TEXT NOT NULL, status INTEGER NOT NULL, headers TEXT NOT NULL,
    stored_at_ms REAL NOT NULL, initial_age_s REAL NOT NULL, fresh_for_s REAL NOT NULL,
    source_no INTEGER NOT NULL, digest TEXT, object TEXT, size INTEGER NOT NULL,
    used_at_s INTEGER NOT NULL, footprint INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX entry_key ON entry (domain, host, kind, path, query, vary);
  CREATE INDEX entry_host ON entry (host, domain);
  CREATE INDEX entry_used ON entry (used_at_s, footprint);
  CREATE UNIQUE INDEX entry_object ON entry (object) WHERE object IS NOT NULL;

  CREATE TABLE clear (
    clear_no INTEGER PRIMARY KEY, clear_id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL,
    domain TEXT, host TEXT, patterns TEXT, phase INTEGER NOT NULL, widened INTEGER NOT NULL DEFAULT 0,
    matched INTEGER NOT NULL DEFAULT 0, invisible_ms REAL NOT NULL DEFAULT 0, ids BLOB,
    removed INTEGER NOT NULL DEFAULT 0, blocked INTEGER NOT NULL DEFAULT 0, gone_ms REAL NOT NULL DEFAULT 0
  ) STRICT;
`;

const migrations = [
  (db: Sqlite): void => {
    db.exec(tables);
    db.exec(createTextIndexSql("entry_text"));
  },
];

export type IndexExpectation = {
  /** Newest journal seq of a clear that the agent has acknowledged: an index that knows less is out of date. */
  readonly cursorSeq: number;
  /** Undefined where the kernel does not tell: then nothing outlives an unclean end. */
  readonly bootId: string | undefined;
  /** What this process has given out already; 0 at its start. */
  readonly clearNo: number;
  readonly lastId: number;
};

export type IndexFile = {
  readonly db: Sqlite;
  /** Why what had been cached was dropped; undefined where it was kept, or there was nothing. */
  readonly dropped: string | undefined;
};

export const indexPath = (directory: string): string => join(directory, "index.db");

/** Opens the index, or makes it anew where what it holds cannot be trusted. Throws what only the disk can be blamed for. */
export async function openIndexFile(
  directory: string,
  expected: IndexExpectation,
  makeAnew: string | undefined,
): Promise<IndexFile> {
  await ensureDirectory(directory);
  const opened =
    makeAnew === undefined ? tryOpen(directory, expected) : { why: makeAnew, keep: false };
  if ("db" in opened) return { db: opened.db, dropped: undefined };
  await discard(directory, opened.keep);
  const db = openNew(directory, expected);
  return { db, dropped: opened.why };
}

function tryOpen(
  directory: string,
  expected: IndexExpectation,
): { readonly db: Sqlite } | { readonly why: string; readonly keep: boolean } {
  let db: Sqlite | undefined;
  try {
    db = openSqlite(indexPath(directory), { sync: "normal" });
    migrate(db, migrations);
    const why = distrust(db, expected);
    if (why === undefined) {
      begin(db, expected);
      return { db };
    }
    db.close();
    return { why, keep: false };
  } catch (error) {
    db?.close();
    if (isDamage(error)) return { why: `index.db is damaged: ${messageOf(error)}`, keep: true };
    if (error instanceof AccelError && error.code === "DATABASE_NEWER")
      return { why: messageOf(error), keep: true };
    throw error;
  }
}

/** Why nothing of this index may be served. */
function distrust(db: Sqlite, expected: IndexExpectation): string | undefined {
  const state = readState(db);
  if (state.boot_id === "") return undefined; // Made just now, or never used.
  if (state.cursor_seq < expected.cursorSeq)
    return `the index knows clears up to journal entry ${state.cursor_seq}, the agent has applied ${expected.cursorSeq}`;
  const sameBoot = expected.bootId !== undefined && state.boot_id === expected.bootId;
  if (state.clean === 0 && !sameBoot)
    return "the host went down without a clean stop: bodies on disk may be torn";
  const span = db
    .prepare<[], { oldest: number | null; newest: number | null }>(
      "SELECT (SELECT min(id) FROM entry) AS oldest, (SELECT max(id) FROM entry) AS newest",
    )
    .get();
  if ((span?.newest ?? 0) - (span?.oldest ?? 0) >= idSpanMax / 2)
    return "the ids of the index span too wide a range";
  if (!textIsWhole(db, state.clean === 0)) rebuildText(db);
  return undefined;
}

function openNew(directory: string, expected: IndexExpectation): Sqlite {
  const db = openSqlite(indexPath(directory), { sync: "normal" });
  try {
    migrate(db, migrations);
    begin(db, expected);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Takes the file into use, durably. A new one goes on where this process was: ids in workers' hands must not name other entries, and a fetch that began
 * before must not pass for one that came after every clear.
 */
function begin(db: Sqlite, { cursorSeq, bootId, clearNo, lastId }: IndexExpectation): void {
  commit(db, "full", () => {
    if (readState(db).boot_id === "") {
      db.prepare<[number]>("INSERT INTO sqlite_sequence (name, seq) VALUES ('entry', ?)").run(
        lastId,
      );
      db.prepare<[number, number, number]>(
        "UPDATE state SET clear_no = ?, floor_no = ?, cursor_seq = ?",
      ).run(clearNo + 1, clearNo + 1, cursorSeq);
    }
    // A clear that was recorded and not applied was never acknowledged; who gave it repeats it under a new number.
    db.prepare("DELETE FROM clear WHERE phase = 0").run();
    db.prepare<[string]>("UPDATE state SET clean = 0, boot_id = ?").run(bootId ?? "unknown");
  });
}

/** A damaged file is set aside for whoever wants to look at it, the newest only: it may be large. */
async function discard(directory: string, keep: boolean): Promise<void> {
  const path = indexPath(directory);
  const aside = readdirSync(directory).filter((name) => name.startsWith("index.db.corrupt-"));
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  if (keep) {
    const newest = Math.max(
      0,
      ...aside.map((name) => Number(name.slice("index.db.corrupt-".length)) || 0),
    );
    for (const name of aside) rmSync(join(directory, name), { force: true });
    renameSync(path, `${path}.corrupt-${newest + 1}`);
  } else rmSync(path, { force: true });
  await syncDirectory(directory);
}

export type StateRow = {
  readonly clear_no: number;
  readonly floor_no: number;
  readonly cursor_seq: number;
  readonly boot_id: string;
  readonly clean: number;
};

export function readState(db: Sqlite): StateRow {
  const row = db.prepare<[], StateRow>("SELECT * FROM state").get();
  if (row === undefined) throw new AccelError("INDEX_BROKEN", "index.db has no state row");
  return row;
}

/** Bodies and index must be on disk already. */
export function markClean(db: Sqlite): void {
  commit(db, "full", () => db.prepare("UPDATE state SET clean = 1").run());
}

/** One immediate transaction at the given sync level. The level cannot change within one. */
export function commit<T>(db: Sqlite, sync: SyncLevel, action: () => T): T {
  if (sync === "normal") return db.transaction(action).immediate();
  db.pragma("synchronous = full");
  try {
    return db.transaction(action).immediate();
  } finally {
    db.pragma("synchronous = normal");
  }
}
