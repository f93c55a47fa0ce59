// agent.db: what the agent knows across restarts. WAL, synchronous FULL: a commit survives power loss.
//
//   meta(key, value)             instance_id, machine, file; epoch, cursor, chain, last_clear_seq
//                                (ledger.ts); index_opening, index_clear_no (indexMemory, below)
//   document(key, value)         JSON: "domains", "policy", "viewset:<domain>" and the book of its releases
//                                (steering), "deployment_site_id"; each part puts its own, whole and
//                                atomically
//   done, receipt, unfinished    the journal's books (ledger.ts)
//   purge(id, domain, host, items)  purges of which central is to be told (purge-queue.ts)
//   bot_set, bot_range           the sets as central gave them, each with the number of the list that holds
//                                its elements (agent/bots); the view bot_element joins both
//
// The instance id is bound to the machine and to the file's inode: on a cloned disk and in a copied state
// directory (a second agent on this host, a backup put back) a new id is made and the history is forgotten,
// so that the clone takes its own snapshot and sends its own receipts. A damaged file is set aside as
// agent.db.corrupt-<n> and the agent starts empty: it serves nothing new until central has answered, and
// never anything stale.

import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Json } from "../../core/journal/canonical-json.ts";
import {
  isCorruption,
  migrate,
  openSqlite,
  type Migration,
  type Sqlite,
  type Transact,
} from "../../base/sqlite.ts";
import { inRoomOf, RoomFile } from "../../base/room-file.ts";
import { Topic } from "../../base/topic.ts";
import type { IndexMemory } from "../cache/index/opening.ts";
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
 * A receipt that replaces what central was told last of an entry. Corrections of another epoch's entries are
 * told to nobody.
 */
export type Correction = EntryReceipt & { readonly epoch: string };

/** JSON documents by key. Each put is one durable transaction. */
export type Documents = Pick<AgentDb, "get" | "put">;

/** The number of damaged files that are kept for inspection; older ones are deleted. */
const corruptFilesMax = 3;
/** The room that is kept on disk for the journal: clears are recorded there, some hundred bytes each, on a disk that is full. */
const roomBytes = 4 * 2 ** 20;

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
  readonly #read;
  readonly #changed;
  readonly #write;
  readonly #remove;

  constructor(sqlite: Sqlite, machine: string | undefined, setAside: string | undefined) {
    this.sqlite = sqlite;
    this.setAside = setAside;
    const room = sqlite.memory ? undefined : new RoomFile(`${sqlite.name}.room`, roomBytes);
    const commit: Transact = (action) => sqlite.transaction(action).immediate();
    this.transact = room === undefined ? commit : (action) => inRoomOf(room, () => commit(action));
    room?.take();
    this.ledger = new Ledger(sqlite, this.transact);
    this.instanceId = bindInstance(sqlite, this.ledger, { machine, file: inodeOf(sqlite) });
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

/**
 * Opens the database. Throws DATABASE_NEWER; a damaged file is set aside, and any other error passes through.
 * `machineIdPath` is for tests.
 */
export function openAgentDb(path: string, machineIdPath = "/etc/machine-id"): AgentDb {
  const machine = machineDigest(machineIdPath);
  try {
    return openWhole(path, machine, undefined);
  } catch (error) {
    if (!isCorruption(error)) throw error;
  }
  return openWhole(path, machine, moveAside(path));
}

class Damaged extends Error {
  readonly code = "SQLITE_CORRUPT";
}

function openWhole(
  path: string,
  machine: string | undefined,
  setAside: string | undefined,
): AgentDb {
  const sqlite = openSqlite(path, { sync: "full" });
  try {
    const verdict = String(sqlite.pragma("quick_check(1)", { simple: true }));
    if (verdict !== "ok") throw new Damaged(verdict);
    migrate(sqlite, migrations);
    return new AgentDb(sqlite, machine, setAside);
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

function moveAside(path: string): string {
  const stem = `${basename(path)}.corrupt-`;
  const numbers = readdirSync(dirname(path))
    .filter((name) => name.startsWith(stem))
    .map((name) => Number(name.slice(stem.length)))
    .filter((no) => Number.isSafeInteger(no));
  const no = Math.max(0, ...numbers) + 1;
  const numbered = (n: number): string => join(dirname(path), `${stem}${n}`);
  // The WAL goes with its file: a new database must not inherit it.
  for (const suffix of ["-wal", "-shm", ""]) {
    for (const old of numbers.filter((n) => n <= no - corruptFilesMax))
      rmSync(numbered(old) + suffix, { force: true });
    if (existsSync(path + suffix)) renameSync(path + suffix, numbered(no) + suffix);
  }
  return numbered(no);
}

/**
 * Returns a digest of the machine id, for machine-id(5) asks not to show the id itself; undefined where the
 * host has none, as in many containers.
 */
function machineDigest(path: string): string | undefined {
  let id: string;
  try {
    id = readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
  if (!/^[0-9a-f]{32}$/.test(id)) return undefined;
  return createHash("sha256").update(`accel-agent instance\n${id}`).digest("hex");
}

/**
 * Returns the inode of the file; a copy has another one. The device is left out, for its number may change
 * when the host starts. A database in memory has no file to copy.
 */
function inodeOf(sqlite: Sqlite): string {
  return sqlite.memory ? "memory" : String(statSync(sqlite.name, { bigint: true }).ino);
}

/** The place where an instance lives. A part that the host does not tell is not compared. */
type Home = { readonly machine: string | undefined; readonly file: string };

function bindInstance(sqlite: Sqlite, ledger: Ledger, home: Home): string {
  const read = sqlite.prepare<[string], { value: string }>("SELECT value FROM meta WHERE key = ?");
  const write = sqlite.prepare<[string, string]>(
    "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  );
  return sqlite
    .transaction(() => {
      const known = read.get("instance_id")?.value;
      let cloned = false;
      for (const [key, now] of Object.entries(home)) {
        if (now === undefined) continue;
        const before = read.get(key)?.value;
        cloned ||= before !== undefined && before !== now;
        write.run(key, now);
      }
      if (known !== undefined && !cloned) return known;
      const made = randomBytes(16).toString("hex");
      write.run("instance_id", made);
      ledger.forget();
      return made;
    })
    .immediate();
}

// What agent.db remembers of the cache index (meta keys `index_opening`, `index_clear_no`, beside the
// ledger's epoch and last_clear_seq), so that a copy of index.db that was put back is not served: it would
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
  return {
    read: () => ({
      epoch: ledger.position.epoch,
      clearSeq: ledger.lastClearSeq,
      clearNo: Number(get.get("index_clear_no") ?? 0),
      opening: get.get("index_opening") ?? null,
    }),
    /** Writes the changes in one transaction that is synced. */
    note: (changes) =>
      transact(() => {
        if (changes.opening !== undefined && changes.opening !== null)
          set.run("index_opening", changes.opening);
        if (changes.clearNo !== undefined) set.run("index_clear_no", String(changes.clearNo));
      }),
  };
}
