// cache/index.db: what is cached, its FTS5 index, and every clear that still matters. One writer, the index thread; workers and the matcher only read.
//
//   state       one row. clear_no: newest number given to a clear or an invalidation, never given twice. floor_no: below it clears are no longer
//               remembered one by one. cursor_seq: journal seq of the newest clear applied here. boot_id, clean: whose writes may be torn.
//               suspect_to: files of entries up to this id were written before a boot that did not come after a clean stop.
//               text_from: entries up to this id are being deleted by a clear of everything and have no row in entry_text any more.
//               awaited_from, awaited_to: entries behind the one and up to the other were stored by an earlier release and have no row in entry_text yet.
//   entry       one row a stored response (variant). Ids ascend and are never reused. key: 48 bits of a hash of what an entry is looked up by. coding, base_id: of a variant, that is a body that was made of that of another entry: its form (entry.ts) and the id,
//               which has its key, vary, mime, tags and source_no; '' and null for all others. tags: exact words joined by blanks. digest: of a static file's source.
//               object, object_digest: name and SHA-256 of the body's file, null where the body stands in `body` or there is none.
//               is_verified: the file was read again after a boot that may have torn it. confirmed_no: newest clear_no that was read before the origin was asked
//               and confirmed the entry; 0: it never did.
//   entry_key   the keys of all entries, a seventh of their texts: fills and deletion are as fast as the pages they dirty are few. Keys outlive their
//               entries a little (stale-keys.ts); no entry is without.
//   softened    what soft clears made stale, and since when; a confirmation by the origin takes an entry out
//   body        bodies up to 32 KiB, by entry id
//   entry_text  FTS5 over entry: rowid = entry.id; columns by core/patterns/index-schema.ts. Derived, rebuilt from entry.
//   clear       one row a clear. patterns: JSON list, null means everything in scope; widened means the same. phase: 0 recorded (the guard knows it),
//               1 applied (ids holds the runs of what it made unservable; durable), 2 gone (rows and objects deleted, ids null). verified: null until
//               the predicate was asked again; left: how many it found then. soft: it makes stale what others take out; phase 2 means that its ids are in `softened`.
//   opening     whose index this is (opening.ts); departure: what went, and why (departures.ts)
//
// An entry is servable iff no clear with clear_no > source_no matches it, soft ones aside. It is fresh only if no soft clear with clear_no >
// max(source_no, confirmed_no) matches it. After a restart the ids of phase 1 clears alone tell what is unservable, or stale.
// Fills commit with synchronous=NORMAL, clears with FULL. SQLite's WAL survives as a prefix: whatever survives of it, every earlier commit does too.

import { rmSync, renameSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ensureDirectory, syncDirectory } from "../../../base/durable-file.ts";
import { whyNoSharedMemory } from "../../../base/disk-space.ts";
import { openSqlite, type Sqlite, type SyncLevel } from "../../../base/sqlite.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import { createDeparturesSql } from "./departures.ts";
import {
  createOpeningSql,
  foreignness,
  noteEpoch,
  noteOpening,
  type IndexFacts,
} from "./opening.ts";
import { idSpanMax } from "./entry-bits.ts";
import { createText, isDamage, rebuildText, textIsWhole } from "./text-index.ts";

const tables = `
  CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), clear_no INTEGER NOT NULL, floor_no INTEGER NOT NULL,
    cursor_seq INTEGER NOT NULL, boot_id TEXT NOT NULL, clean INTEGER NOT NULL, suspect_to INTEGER NOT NULL,
    text_from INTEGER NOT NULL, awaited_from INTEGER NOT NULL DEFAULT 0, awaited_to INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  INSERT INTO state VALUES (1, 0, 0, 0, '', 0, 0, 0, 0, 0);

  CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL,
    domain TEXT NOT NULL, host TEXT NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, query TEXT NOT NULL,
    vary TEXT NOT NULL, coding TEXT NOT NULL DEFAULT '', base_id INTEGER,
    mime TEXT NOT NULL, status INTEGER NOT NULL, headers TEXT NOT NULL,
    stored_at_ms REAL NOT NULL, initial_age_s REAL NOT NULL, fresh_for_s REAL NOT NULL,
    source_no INTEGER NOT NULL, digest TEXT, object TEXT, object_digest BLOB, is_verified INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL, used_at_s INTEGER NOT NULL, footprint INTEGER NOT NULL, tags TEXT NOT NULL DEFAULT '',
    confirmed_no INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX entry_scope ON entry (domain, host, id, footprint);
  CREATE INDEX entry_base ON entry (base_id) WHERE base_id IS NOT NULL;
  CREATE INDEX entry_used ON entry (domain, used_at_s);
  CREATE UNIQUE INDEX entry_object ON entry (object) WHERE object IS NOT NULL;

  CREATE TABLE entry_key (key INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (key, id)) STRICT, WITHOUT ROWID;

  CREATE TABLE softened (id INTEGER PRIMARY KEY, since_s INTEGER NOT NULL) STRICT;

  CREATE TABLE body (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;

  CREATE TABLE clear (
    clear_no INTEGER PRIMARY KEY, clear_id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL,
    domain TEXT, host TEXT, patterns TEXT, phase INTEGER NOT NULL, widened INTEGER NOT NULL DEFAULT 0,
    matched INTEGER NOT NULL DEFAULT 0, invisible_ms REAL NOT NULL DEFAULT 0, ids BLOB,
    removed INTEGER NOT NULL DEFAULT 0, blocked INTEGER NOT NULL DEFAULT 0, gone_ms REAL NOT NULL DEFAULT 0,
    at_s INTEGER NOT NULL DEFAULT 0, verified INTEGER, left INTEGER NOT NULL DEFAULT 0, soft INTEGER NOT NULL DEFAULT 0
  ) STRICT;
`;

/** Goes up with every change of the tables or of the text in the index: an index of another shape is made anew, what it holds can be fetched again. */
const shape = 10;
/** The steps by which older shapes are brought to this one, by the shape that they begin with. */
const upgrades: Readonly<Record<number, (db: Sqlite) => void>> = { 8: addTags, 9: addSoftClears };

export type IndexExpectation = {
  /** The facts that the agent has acknowledged: an index that knows less is out of date. */
  readonly facts: IndexFacts;
  /** Random: the name of this opening. */
  readonly opening: string;
  readonly nowS: number;
  /** Undefined where the kernel does not tell: then nothing outlives an unclean end. */
  readonly bootId: string | undefined;
  /** The numbers that this process has given out already; 0 at its start. */
  readonly clearNo: number;
  readonly lastId: number;
};

export type IndexFile = {
  readonly db: Sqlite;
  /** Why what had been cached was dropped; undefined where it was kept, or there was nothing. */
  readonly dropped: string | undefined;
  /** Used before, and not closed: whether every word is in the text index has still to be checked. */
  readonly isUnchecked: boolean;
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
  if ("db" in opened)
    return { db: opened.db, dropped: opened.missing, isUnchecked: opened.isUnchecked };
  await discard(directory, opened.keep);
  const db = openNew(directory, expected, opened.why);
  return { db, dropped: opened.why, isUnchecked: false };
}

function tryOpen(
  directory: string,
  expected: IndexExpectation,
):
  | {
      readonly db: Sqlite;
      readonly missing: string | undefined;
      readonly isUnchecked: boolean;
    }
  | { readonly why: string; readonly keep: boolean } {
  let db: Sqlite | undefined;
  try {
    db = openWritable(directory);
    const version = Number(db.pragma("user_version", { simple: true }));
    if (version === 0) makeTables(db);
    else upgrade(db, version);
    const why =
      version === 0 || version === shape || upgrades[version] !== undefined
        ? distrust(db, expected)
        : `index.db has shape ${version}, this release has ${shape}`;
    if (why === undefined) {
      const isMissed = expected.facts.opening !== null && readState(db).boot_id === "";
      const missing = isMissed ? "index.db was missing" : undefined;
      const state = readState(db);
      begin(db, expected, missing);
      const isUnchecked = !isWhole(state, expected.bootId) && state.boot_id !== "";
      return { db, missing, isUnchecked };
    }
    db.close();
    return { why, keep: version > shape };
  } catch (error) {
    db?.close();
    if (isDamage(error)) return { why: `index.db is damaged: ${messageOf(error)}`, keep: true };
    throw error;
  }
}

/** Returns why nothing of this index may be served. */
function distrust(db: Sqlite, expected: IndexExpectation): string | undefined {
  const state = readState(db);
  if (state.boot_id === "") return undefined; // Made just now, or never used.
  const { clearSeq } = expected.facts;
  if (state.cursor_seq < clearSeq)
    return `the index knows clears up to journal entry ${state.cursor_seq}, the agent has applied ${clearSeq}`;
  const clearNo = Math.max(expected.facts.clearNo, expected.clearNo);
  const foreign = foreignness(db, { ...expected.facts, clearNo }, state.clear_no);
  if (foreign !== undefined) return foreign;
  const unapplied = db
    .prepare<[], number | null>("SELECT min(clear_no) FROM clear WHERE phase = 0")
    .pluck()
    .get();
  // The copy was made while the clear was being matched: it has the number, and still all that the clear hit.
  if (typeof unapplied === "number" && unapplied <= expected.facts.clearNo)
    return `the index is an older copy: clear ${unapplied} is not applied in it, number ${expected.facts.clearNo} was acknowledged`;
  const span = db
    .prepare<[], { oldest: number | null; newest: number | null }>(
      "SELECT (SELECT min(id) FROM entry) AS oldest, (SELECT max(id) FROM entry) AS newest",
    )
    .get();
  if ((span?.newest ?? 0) - (span?.oldest ?? 0) >= idSpanMax / 2)
    return "the ids of the index span too wide a range";
  if (!textIsWhole(db, !isWhole(state, expected.bootId))) rebuildText(db);
  return undefined;
}

/** The WAL is written back every 32 MiB, until somebody else takes that over (checkpoints.ts): deletions touch pages all over the file, and each is written to it once a checkpoint. */
const checkpointPages = 8_192;
/**
 * The page cache of the index thread's connection: the inner pages that a million keys need, and what one
 * step changes.
 */
const pageCacheKiB = 32_768;
/**
 * The size that background work lets the WAL reach; it is then written again in place. A WAL that was cut off
 * has its new pages zeroed first as it grows, 7 % of a deletion.
 */
const walBytesKept = 2 ** 27;

function openWritable(directory: string): Sqlite {
  const why = whyNoSharedMemory(indexPath(directory));
  if (why !== undefined) throw Object.assign(new Error(why), { code: "SQLITE_FULL" });
  const db = openSqlite(indexPath(directory), { sync: "normal" });
  db.pragma(`wal_autocheckpoint = ${checkpointPages}`);
  db.pragma(`cache_size = -${pageCacheKiB}`);
  db.pragma(`journal_size_limit = ${walBytesKept}`);
  return db;
}

/** The bytes that the WAL takes on disk. */
export function walBytesOf(directory: string): number {
  return statSync(`${indexPath(directory)}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

function makeTables(db: Sqlite): void {
  // Free pages can be cut off (shrinking.ts). SQLite takes this in only while the file is empty, and with VACUUM.
  db.pragma("auto_vacuum = INCREMENTAL");
  db.exec("VACUUM");
  db.transaction(() => {
    db.exec(tables);
    createText(db);
    db.exec(createOpeningSql);
    db.exec(createDeparturesSql);
    db.pragma(`user_version = ${shape}`);
  }).immediate();
}

/** Brings an older shape to this one, if it can be. */
function upgrade(db: Sqlite, version: number): void {
  db.transaction(() => {
    for (let at = version; ; at++) {
      const step = upgrades[at];
      if (step === undefined) return;
      step(db);
      db.pragma(`user_version = ${at + 1}`);
    }
  }).immediate();
}

/**
 * The text index gets another column, so it starts empty: what is stored is indexed again in the background
 * (Entries.indexOlder), and clears widen until that has ended.
 */
function addTags(db: Sqlite): void {
  db.exec(`
      ALTER TABLE entry ADD COLUMN tags TEXT NOT NULL DEFAULT '';
      ALTER TABLE state ADD COLUMN awaited_from INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE state ADD COLUMN awaited_to INTEGER NOT NULL DEFAULT 0;
      UPDATE state SET awaited_from = text_from, awaited_to = max(text_from, coalesce((SELECT max(id) FROM entry), 0));
      DROP TABLE IF EXISTS entry_text;
    `);
  createText(db);
}

function addSoftClears(db: Sqlite): void {
  db.exec(`
      ALTER TABLE entry ADD COLUMN confirmed_no INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE clear ADD COLUMN soft INTEGER NOT NULL DEFAULT 0;
      CREATE TABLE softened (id INTEGER PRIMARY KEY, since_s INTEGER NOT NULL) STRICT;
    `);
}

function openNew(directory: string, expected: IndexExpectation, why: string): Sqlite {
  const db = openWritable(directory);
  try {
    makeTables(db);
    begin(db, expected, why);
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
function begin(
  db: Sqlite,
  { facts, opening, nowS, bootId, clearNo, lastId }: IndexExpectation,
  anew: string | undefined,
): void {
  commit(db, "full", () => {
    noteOpening(db, opening, anew === undefined ? undefined : { reason: anew, atS: nowS });
    if (readState(db).boot_id === "") {
      const next = Math.max(clearNo, facts.clearNo) + 1;
      noteEpoch(db, facts.epoch);
      db.prepare<[number]>("INSERT INTO sqlite_sequence (name, seq) VALUES ('entry', ?)").run(
        lastId,
      );
      db.prepare<[number, number, number]>(
        "UPDATE state SET clear_no = ?, floor_no = ?, cursor_seq = ?",
      ).run(next, next, facts.clearSeq);
    }
    // A clear that was recorded and not applied was never acknowledged; who gave it repeats it under a new number.
    db.prepare("DELETE FROM clear WHERE phase = 0").run();
    const state = readState(db);
    const sameBoot = bootId !== undefined && [bootId, handedOverIn(bootId)].includes(state.boot_id);
    if (state.clean === 0 && !sameBoot)
      db.prepare("UPDATE state SET suspect_to = coalesce((SELECT max(id) FROM entry), 0)").run();
    db.prepare<[string]>("UPDATE state SET clean = 0, boot_id = ?").run(bootId ?? "unknown");
  });
}

/** Removes the file. A damaged one is set aside for whoever wants to look at it, the newest only: it may be large. */
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
  readonly suspect_to: number;
};

export function readState(db: Sqlite): StateRow {
  const row = db.prepare<[], StateRow>("SELECT * FROM state").get();
  if (row === undefined) throw new AccelError("INDEX_BROKEN", "index.db has no state row");
  return row;
}

/** Marks the index as one that was closed in good order. Bodies and index must be on disk already. */
export function markClean(db: Sqlite): void {
  commit(db, "full", () => db.prepare("UPDATE state SET clean = 1").run());
}

/** What stands in the place of the boot's id when the index was closed in good order, with bodies that only the kernel has yet. */
const handedOverIn = (bootId: string): string => `${bootId} handed over`;

/** Marks the index as one that was closed in good order for a process that opens it next, of the same boot. */
export function markHandedOver(db: Sqlite): void {
  const { boot_id: bootId } = readState(db);
  commit(db, "normal", () =>
    db.prepare<[string]>("UPDATE state SET boot_id = ?").run(handedOverIn(bootId)),
  );
}

/** Whether it was closed in good order. */
function isWhole({ clean, boot_id: closedIn }: StateRow, bootId: string | undefined): boolean {
  return clean === 1 || (bootId !== undefined && closedIn === handedOverIn(bootId));
}

/**
 * Writes, and changes nothing: for a FULL commit that makes those before it durable. SQLite does not write a row that is
 * set to what it was, and syncs nothing then; so it is changed, and changed back.
 */
export function touchState(db: Sqlite): void {
  const change = db.prepare("UPDATE state SET clean = 1 - clean");
  change.run();
  change.run();
}

/** Runs an action in one immediate transaction at the given sync level, which cannot change within one. */
export function commit<T>(db: Sqlite, sync: SyncLevel, action: () => T): T {
  if (sync === "normal") return db.transaction(action).immediate();
  db.pragma("synchronous = full");
  try {
    return db.transaction(action).immediate();
  } finally {
    db.pragma("synchronous = normal");
  }
}
