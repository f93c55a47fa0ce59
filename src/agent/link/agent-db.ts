// agent.db: what the agent knows across restarts. WAL, synchronous FULL: a commit survives power loss.
//
//   meta(key, value)             compatible_from; instance_id, machine, file, index_moved (instance-home.ts); epoch,
//                                cursor, chain, last_clear_seq (ledger.ts); index_opening, index_clear_no
//                                (indexMemory, below)
//   document(key, value)         JSON: "domains", "policy", "viewset:<domain>" and the book of its releases
//                                (steering), "deployment_site_id", "unreviewed" (agent/bots); each part puts
//                                its own, whole and atomically
//   done, receipt, unfinished    the journal's books (ledger.ts)
//   purge(id, domain, host, items)  purges of which central is to be told (purge-queue.ts)
//   bot_set, bot_range           the sets as central gave them, each with the number of the list that holds
//                                its elements (agent/bots); the view bot_element joins both
//
// A damaged file is set aside as agent.db.corrupt-<n> and the agent starts empty: it serves nothing new until
// central has answered, and never anything stale.
//
// A file of a newer release says by `compatible_from` from which schema version on a program may use it. One
// that may uses what it knows of it and leaves the schema as it is. For any other the file is set aside as
// agent.db.newer-<n>, untouched, and the agent starts empty as well. Purges that central was not told of are
// taken over.

import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Json } from "../../core/journal/canonical-json.ts";
import {
  imageOf,
  isCorruption,
  isDiskFault,
  migrate,
  openSqlite,
  schemaVersion,
  type Migration,
  type Sqlite,
  type Transact,
} from "../../base/sqlite.ts";
import { Topic } from "../../base/topic.ts";
import { diskSpaceOf, whyNoSharedMemory } from "../../base/disk-space.ts";
import { AccelError, messageOf, systemCode } from "../../core/faults.ts";
import type { IndexMemory } from "../cache/index/opening.ts";
import { checkpointPages, committingInRoom, keepPages, roomInWal } from "./agent-db-room.ts";
import { bindInstance, machineDigest, type Moved } from "./instance-home.ts";
import { Ledger, type EntryReceipt } from "./ledger.ts";

const migrations: readonly Migration[] = [
  (db) => {
    db.exec(`
      CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE document (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE done (seq INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, chain TEXT NOT NULL) STRICT;
      CREATE TABLE receipt (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        seq INTEGER NOT NULL, phase TEXT NOT NULL, detail TEXT NOT NULL, took_ms INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE unfinished (seq INTEGER PRIMARY KEY, entry TEXT NOT NULL) STRICT;
      CREATE TABLE bot_set (
        host TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('bad', 'vip')),
        version INTEGER NOT NULL, count INTEGER NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (host, kind)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE bot_element (
        host TEXT NOT NULL, kind TEXT NOT NULL, bot TEXT NOT NULL, range TEXT NOT NULL,
        PRIMARY KEY (host, kind, bot, range)
      ) STRICT, WITHOUT ROWID;
    `);
  },
  // Seconds by this host's clock; null in rows that existed before. It is only shown to operators; nothing is
  // decided by it.
  (db) => {
    db.exec(`
      ALTER TABLE document ADD COLUMN changed_at INTEGER;
      ALTER TABLE bot_set ADD COLUMN changed_at INTEGER;
      ALTER TABLE bot_element ADD COLUMN added_at INTEGER;
    `);
  },
  // A new whole set is written as a list of its own while the old list is in force; one row then switches the
  // set to it.
  (db) => {
    db.exec(`
      CREATE TABLE bot_range (
        list INTEGER NOT NULL, bot TEXT NOT NULL, range TEXT NOT NULL, added_at INTEGER,
        PRIMARY KEY (list, bot, range)
      ) STRICT, WITHOUT ROWID;
      ALTER TABLE bot_set ADD COLUMN list INTEGER NOT NULL DEFAULT 0;
      UPDATE bot_set SET list = (
        SELECT count(*) FROM bot_set AS other WHERE (other.host, other.kind) <= (bot_set.host, bot_set.kind)
      );
      INSERT INTO bot_range SELECT list, bot, range, added_at FROM bot_element JOIN bot_set USING (host, kind);
      DROP TABLE bot_element;
      CREATE VIEW bot_element AS SELECT host, kind, bot, range, added_at FROM bot_set JOIN bot_range USING (list);
    `);
  },
  (db) => {
    db.exec(`
      CREATE TABLE purge (
        id INTEGER PRIMARY KEY AUTOINCREMENT, domain TEXT NOT NULL, host TEXT, items TEXT NOT NULL
      ) STRICT;
    `);
  },
];

/**
 * The schema version from which on a program may read and write what the last migration leaves: it is written
 * into each file. It stays as it is with a migration that an older program cannot harm, and is not harmed by,
 * however long it works on the file: a new table that may be out of date, or a column with a default, in a
 * table whose rows are written with the names of their columns. With any other migration it becomes the
 * number of migrations. A row of `purge` or `document` that older programs would misread is such a migration,
 * too, even if no table changes.
 */
export const agentSchema = { version: migrations.length, compatibleFrom: 4 } as const;

/** A file that a newer release wrote. */
export type NewerFile = {
  readonly version: number;
  /** Where it was set aside; undefined: it is in use. */
  readonly setAside: string | undefined;
  /** The receipts in it that central was not told of. */
  readonly receipts: number;
};

/** Purges that central was not told of. */
type Untold = { readonly domain: string; readonly host: string | null; readonly items: string };

/**
 * A receipt that replaces what central was told last of an entry. Corrections of another epoch's entries are
 * told to nobody.
 */
export type Correction = EntryReceipt & { readonly epoch: string };

/** JSON documents by key. Each put is one durable transaction. */
export type Documents = Pick<AgentDb, "get" | "put">;

/** The number of files of each kind that are kept for inspection; older ones are deleted. */
const asideFilesMax = 3;
export class AgentDb {
  readonly sqlite: Sqlite;
  readonly ledger: Ledger;
  readonly instanceId: string;
  /** Runs one durable transaction; on a full disk in the room that is kept for it. */
  readonly transact: Transact;
  /** Publishes corrections once they are durable. */
  readonly corrected = new Topic<readonly Correction[]>();
  /** Where the damaged file was set aside, if there was one. */
  readonly setAside: string | undefined;
  readonly newer: NewerFile | undefined;
  /** From where and why this instance is another one than before; undefined where it is the same, or the first. */
  readonly moved: Moved | undefined;
  /** Why nobody else can open the file: the disk had no room for what others would share. */
  readonly alone: string | undefined;
  readonly #read;
  readonly #changed;
  readonly #write;
  readonly #remove;

  constructor(
    sqlite: Sqlite,
    machine: string | undefined,
    { setAside, newer, alone }: Opened = {},
  ) {
    this.sqlite = sqlite;
    this.alone = alone;
    this.setAside = setAside;
    this.newer = newer;
    const commit: Transact = (action) => sqlite.transaction(action).immediate();
    this.transact = sqlite.memory ? commit : committingInRoom(sqlite.name, commit);
    if (!sqlite.memory && alone === undefined) keepPages(sqlite);
    this.ledger = new Ledger(sqlite, this.transact);
    const { id, moved } = bindInstance(sqlite, this.ledger, machine);
    this.instanceId = id;
    this.moved = moved;
    this.#read = sqlite.prepare<[string], { value: string }>(
      "SELECT value FROM document WHERE key = ?",
    );
    this.#changed = sqlite.prepare<[string], { changed_at: number | null }>(
      "SELECT changed_at FROM document WHERE key = ?",
    );
    this.#write = sqlite.prepare<[string, string]>(
      `INSERT INTO document (key, value, changed_at) VALUES (?, ?, unixepoch()) ON CONFLICT DO UPDATE
       SET value = excluded.value, changed_at = iif(document.value = excluded.value, document.changed_at, excluded.changed_at)`,
    );
    this.#remove = sqlite.prepare<[string]>("DELETE FROM document WHERE key = ?");
  }

  /** For who cannot open the file: everything in it as of now; undefined where it can be opened. */
  image(): Uint8Array | undefined {
    return this.alone === undefined ? undefined : imageOf(this.sqlite);
  }

  get(key: string): unknown {
    const row = this.#read.get(key);
    return row === undefined ? undefined : JSON.parse(row.value);
  }

  /** Returns when the document last changed, or undefined if that is not known. */
  changedAt(key: string): Date | undefined {
    const seconds = this.#changed.get(key)?.changed_at ?? null;
    return seconds === null ? undefined : new Date(seconds * 1_000);
  }

  /** Returns the keys that begin with `prefix`, sorted. */
  keys(prefix: string): readonly string[] {
    return this.sqlite
      .prepare<[string, string], { key: string }>(
        "SELECT key FROM document WHERE substr(key, 1, length(?)) = ? ORDER BY key",
      )
      .all(prefix, prefix)
      .map(({ key }) => key);
  }

  /**
   * Writes all changes or none; they are durable on return. Null deletes a document. `corrections` go into
   * the same transaction and tell central anew of entries that were receipted before.
   */
  put(changes: Readonly<Record<string, Json>>, corrections: readonly Correction[] = []): void {
    this.transact(() => {
      for (const [key, value] of Object.entries(changes)) {
        if (value === null) this.#remove.run(key);
        else this.#write.run(key, JSON.stringify(value));
      }
      for (const { epoch, ...receipt } of corrections) this.ledger.correct(epoch, receipt);
    });
    if (corrections.length > 0) this.corrected.tell(corrections);
  }

  [Symbol.dispose](): void {
    this.sqlite.close();
  }
}

/** What became of a file that was there and is not used as it was, and how it is used. */
type Opened = {
  readonly setAside?: string | undefined;
  readonly newer?: NewerFile | undefined;
  readonly alone?: string | undefined;
};

/**
 * Opens the database. A damaged file, and one of a newer release that this one may not use, are set aside;
 * any other error passes through, that of a disk as DISK_FAILED. `machineIdPath` is for tests.
 */
export function openAgentDb(path: string, machineIdPath = "/etc/machine-id"): AgentDb {
  const machine = machineDigest(machineIdPath);
  roomInWal(path).lay();
  try {
    return openWhole(path, machine);
  } catch (error) {
    if (error instanceof NotCompatible) return openInstead(path, machine, error);
    if (isDiskFault(error)) throw unopenable(path, error);
    if (!isCorruption(error)) throw error;
  }
  return openWhole(path, machine, { setAside: moveAside(path, "corrupt") });
}

function unopenable(path: string, error: unknown): AccelError {
  const { free } = diskSpaceOf(dirname(path)) ?? {};
  const full =
    free !== undefined && free < 2 ** 20
      ? `; its disk has ${free} bytes free for this user, and a start needs some`
      : "";
  const why = `${messageOf(error)} (${systemCode(error) ?? "unknown"})`;
  return new AccelError("DISK_FAILED", `${path} cannot be opened: ${why}${full}`);
}

class NotCompatible extends Error {
  readonly version: number;
  readonly receipts: number;
  readonly purges: readonly Untold[];

  constructor(version: number, receipts: number, purges: readonly Untold[]) {
    super(`agent.db has schema version ${version}`);
    this.version = version;
    this.receipts = receipts;
    this.purges = purges;
  }
}

function openInstead(
  path: string,
  machine: string | undefined,
  { version, receipts, purges }: NotCompatible,
): AgentDb {
  const setAside = moveAside(path, "newer");
  const db = openWhole(path, machine, { newer: { version, setAside, receipts } });
  const add = db.sqlite.prepare<[string, string | null, string]>(
    "INSERT INTO purge (domain, host, items) VALUES (?, ?, ?)",
  );
  db.transact(() => {
    for (const { domain, host, items } of purges) add.run(domain, host, items);
  });
  return db;
}

class Damaged extends Error {
  readonly code = "SQLITE_CORRUPT";
}

type OpenedFile = { readonly sqlite: Sqlite; readonly alone: string | undefined };

/** Opens the file; on a disk without room for `agent.db-shm`, which SQLite makes anew at each opening (32 KiB), alone. */
function openFile(path: string): OpenedFile {
  const why = whyNoSharedMemory(path);
  if (why !== undefined) return { sqlite: openRead(path, true), alone: why };
  try {
    return { sqlite: openRead(path, false), alone: undefined };
  } catch (error) {
    if (!mayLackRoom(error)) throw error;
    try {
      return { sqlite: openRead(path, true), alone: messageOf(error) };
    } catch {
      throw error;
    }
  }
}

/** Opens the file and reads it once: only then does SQLite make what it needs. */
function openRead(path: string, alone: boolean): Sqlite {
  const sqlite = openSqlite(path, { sync: "full", alone });
  try {
    sqlite.pragma(`wal_autocheckpoint = ${checkpointPages}`);
    schemaVersion(sqlite);
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

function mayLackRoom(error: unknown): boolean {
  const code = systemCode(error) ?? "";
  // Where no file can be made any more, a file that is there "cannot be opened".
  return /^SQLITE_(?:FULL|IOERR|CANTOPEN)/.test(code);
}

function openWhole(path: string, machine: string | undefined, found: Opened = {}): AgentDb {
  const { sqlite, alone } = openFile(path);
  const opened = { ...found, alone };
  try {
    const verdict = String(sqlite.pragma("quick_check(1)", { simple: true }));
    if (verdict !== "ok") throw new Damaged(verdict);
    const version = schemaVersion(sqlite);
    if (version > agentSchema.version) {
      if (!isForUs(sqlite)) throw notCompatible(sqlite, version);
      return new AgentDb(sqlite, machine, {
        ...opened,
        newer: { version, setAside: undefined, receipts: 0 },
      });
    }
    migrate(sqlite, migrations);
    sqlite
      .prepare(
        "INSERT INTO meta (key, value) VALUES ('compatible_from', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
      )
      .run(String(agentSchema.compatibleFrom));
    return new AgentDb(sqlite, machine, opened);
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/** Whether a newer release says that this one may use the file. */
function isForUs(sqlite: Sqlite): boolean {
  const from = Number(
    readIfThere(sqlite, "SELECT value FROM meta WHERE key = 'compatible_from'")?.[0]?.["value"],
  );
  return from >= 1 && from <= agentSchema.version;
}

function notCompatible(sqlite: Sqlite, version: number): NotCompatible {
  const [row] = readIfThere(sqlite, "SELECT count(*) AS receipts FROM receipt") ?? [];
  const purges = readIfThere(sqlite, "SELECT domain, host, items FROM purge ORDER BY id") ?? [];
  const untold = hasOurPurges(sqlite) ? (purges as readonly Untold[]) : [];
  return new NotCompatible(version, Number(row?.["receipts"] ?? 0), untold);
}

/** Whether the table of purges is the one of this release: its rows are read only then. */
function hasOurPurges(sqlite: Sqlite): boolean {
  using ours = openMemory();
  const sql = "SELECT sql FROM sqlite_schema WHERE name = 'purge'";
  const [theirs, own] = [sqlite, ours.sqlite].map((db) => readIfThere(db, sql)?.[0]?.["sql"]);
  return typeof own === "string" && theirs === own;
}

function openMemory(): { readonly sqlite: Sqlite } & Disposable {
  const sqlite = openSqlite(":memory:", { sync: "full" });
  migrate(sqlite, migrations);
  return { sqlite, [Symbol.dispose]: () => sqlite.close() };
}

/** Rows of a file whose tables are not known; undefined where it has no such ones. */
function readIfThere(
  sqlite: Sqlite,
  sql: string,
): readonly Readonly<Record<string, unknown>>[] | undefined {
  try {
    return sqlite.prepare<[], Readonly<Record<string, unknown>>>(sql).all();
  } catch (error) {
    if (systemCode(error) === "SQLITE_ERROR") return undefined;
    throw error;
  }
}

function moveAside(path: string, why: "corrupt" | "newer"): string {
  const stem = `${basename(path)}.${why}-`;
  const numbers = readdirSync(dirname(path))
    .filter((name) => name.startsWith(stem))
    .map((name) => Number(name.slice(stem.length)))
    .filter((no) => Number.isSafeInteger(no));
  const no = Math.max(0, ...numbers) + 1;
  const numbered = (n: number): string => join(dirname(path), `${stem}${n}`);
  roomInWal(path).leave();
  // The WAL goes with its file: a new database must not inherit it.
  for (const suffix of ["-wal", "-shm", ""]) {
    for (const old of numbers.filter((n) => n <= no - asideFilesMax))
      rmSync(numbered(old) + suffix, { force: true });
    if (existsSync(path + suffix)) renameSync(path + suffix, numbered(no) + suffix);
  }
  return numbered(no);
}

// What agent.db remembers of the cache index (meta keys `index_opening`, `index_clear_no`, `index_moved`, beside
// the ledger's epoch and last_clear_seq), so that a copy of index.db that was put back is not served: it would
// hold what was cleared since.

export function indexMemory({
  sqlite,
  ledger,
  transact,
}: Pick<AgentDb, "sqlite" | "ledger" | "transact">): IndexMemory {
  const get = sqlite.prepare<[string], string>("SELECT value FROM meta WHERE key = ?").pluck();
  const set = sqlite.prepare<[string, string]>(
    "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  );
  const forget = sqlite.prepare<[string]>("DELETE FROM meta WHERE key = ?");
  return {
    read: () => ({
      epoch: ledger.position.epoch,
      clearSeq: ledger.lastClearSeq,
      clearNo: Number(get.get("index_clear_no") ?? 0),
      opening: get.get("index_opening") ?? null,
      moved: get.get("index_moved"),
    }),
    /** Writes the changes in one transaction that is synced. What was copied is out of use once another opening is noted. */
    note: (changes) =>
      transact(() => {
        if (changes.opening !== undefined && changes.opening !== null) {
          set.run("index_opening", changes.opening);
          forget.run("index_moved");
        }
        if (changes.clearNo !== undefined) set.run("index_clear_no", String(changes.clearNo));
      }),
  };
}
