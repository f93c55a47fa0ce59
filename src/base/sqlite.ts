// Opens and migrates a SQLite file the way every store here needs it: WAL, an explicit sync level, no mmap (a
// damaged file must not end the process), bounded waiting.

import Database from "better-sqlite3";
import { AccelError, systemCode } from "../core/faults.ts";

export type Sqlite = Database.Database;
export type Statement<Parameters extends unknown[] = unknown[], Row = unknown> = Database.Statement<
  Parameters,
  Row
>;

/** `full`: a commit survives power loss. `normal`: it survives a crash of the process. */
export type SyncLevel = "full" | "normal";

/** Runs one transaction: all of it is committed on return, or nothing is and it throws. */
export type Transact = <T>(action: () => T) => T;

export type Migration = (db: Sqlite) => void;

const busyTimeoutMs = 5_000;

export type OpenOptions = {
  readonly sync: SyncLevel;
  readonly readonly?: boolean;
  /** Nobody else can open the file meanwhile, not even to read. What others would share (`-shm`) is in memory, so that opening needs no room on the disk for it. */
  readonly alone?: boolean;
};

export function openSqlite(
  path: string,
  { sync, readonly = false, alone = false }: OpenOptions,
): Sqlite {
  const db = new Database(path, { readonly, fileMustExist: readonly, timeout: busyTimeoutMs });
  try {
    if (alone) db.pragma("locking_mode = EXCLUSIVE");
    if (!readonly) db.pragma("journal_mode = WAL");
    db.pragma(`synchronous = ${sync}`);
    db.pragma("foreign_keys = ON");
    db.pragma("mmap_size = 0");
    db.pragma("journal_size_limit = 67108864"); // 64 MiB: a burst must not leave its WAL behind.
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Returns a database in memory with everything of an image (imageOf). */
export const openImage = ({ buffer, byteOffset, byteLength }: Uint8Array): Sqlite =>
  new Database(Buffer.from(buffer, byteOffset, byteLength));

/** The places in a file's header that say whether it is written through a WAL, which a database in memory has not (SQLite file format, 1.3.3). */
const writeVersionAt = 18;
const readVersionAt = 19;

/** Returns all of a database as of now, for openImage. */
export function imageOf(db: Sqlite): Uint8Array {
  const image = db.serialize();
  image[writeVersionAt] = image[readVersionAt] = 1;
  return image;
}

/** The version of a file's schema; 0: it has none yet. */
export const schemaVersion = (db: Sqlite): number =>
  Number(db.pragma("user_version", { simple: true }));

/**
 * Migrates a file; migration n leads from version n to n+1, and each runs in its own immediate transaction. A
 * file from a newer release is refused, untouched.
 */
export function migrate(db: Sqlite, migrations: readonly Migration[]): void {
  const version = schemaVersion(db);
  if (version > migrations.length) {
    throw new AccelError(
      "DATABASE_NEWER",
      `${db.name} has schema version ${version}, this release knows ${migrations.length}`,
    );
  }
  migrations.slice(version).forEach((migration, i) => {
    db.transaction(() => {
      migration(db);
      db.pragma(`user_version = ${version + i + 1}`);
    }).immediate();
  });
}

/**
 * Returns whether an error says that the file is no intact database, so that it can be set aside and made
 * anew.
 */
export function isCorruption(error: unknown): boolean {
  const code = systemCode(error) ?? "";
  return code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB";
}

const diskCodes = [
  "SQLITE_IOERR",
  "SQLITE_FULL",
  "SQLITE_READONLY",
  "SQLITE_CANTOPEN",
  "SQLITE_BUSY",
  "SQLITE_LOCKED",
  "SQLITE_PERM",
  "SQLITE_NOMEM",
];

/**
 * Returns whether an error says that the disk is full, failing or forbidden, which may pass without touching
 * the file. Errors of node:fs carry an errno.
 */
export function isDiskFault(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const code = String(error.code);
  return "errno" in error || diskCodes.some((disk) => code.startsWith(disk));
}
