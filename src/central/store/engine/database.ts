// Opening central's store: SQLite in WAL with full sync, through Kysely; one writer at a time.

import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { Kysely, sql, type Transaction } from "kysely";
import { Migrator } from "kysely/migration";
import { diskSpaceOf } from "../../../base/disk-space.ts";
import { isCorruption, isDiskFault, openSqlite, type Sqlite } from "../../../base/sqlite.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import { migrations } from "./migrations.ts";
import { PacedSqliteDialect } from "./paced-dialect.ts";
import type { StoreTables } from "./schema.ts";
import { keptSteps, levelOf, mayWorkOn, newestUnknown } from "./store-steps.ts";

export type Store = Kysely<StoreTables>;
/** The transaction that every query function takes: a part of one, or the store itself for single reads. */
export type Tx = Transaction<StoreTables>;
export type Queries = Store | Tx;

/** The cache of pages: the indexes of a million elements are 100 MiB. */
const cacheKiB = 65_536;

/** `newer`: whether a store that a newer release has brought further may be used, where what was done to it bears that. Central serves on it; what must know all of it does not. */
export type PrepareOptions = { readonly newer: "used" | "refused" };

/**
 * Creates and migrates. Throws DATABASE_NEWER for a store of a newer release, STORE_DAMAGED for what is no intact database, DISK_FAILED for a disk that refuses.
 */
export async function openStore(
  path: string,
  now: () => Date,
  options: PrepareOptions = { newer: "refused" },
): Promise<Store & AsyncDisposable> {
  try {
    return await openIntact(path, now, options);
  } catch (error) {
    // A disk without room for the files beside it (32 KiB) says that it cannot be read.
    if (isDiskFault(error) && !(error instanceof AccelError)) throw refusedByDisk(path, error);
    if (!isCorruption(error)) throw error;
    throw new AccelError("STORE_DAMAGED", `the store ${path} is damaged: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** SQLite needs so much for the file of shared memory that it makes beside the store, and a little for the WAL. */
const openingBytes = 2 ** 16;

/** Says what the disk lacks, as far as it can be seen: SQLite says "disk I/O error" of most of it. */
function refusedByDisk(path: string, error: unknown): AccelError {
  const disk = diskSpaceOf(dirname(path));
  const lack =
    disk === undefined
      ? ""
      : disk.free < openingBytes
        ? `; its disk is full (${disk.free} bytes are free)`
        : disk.files?.free === 0
          ? "; no more files can be made on its disk"
          : "";
  return new AccelError(
    "DISK_FAILED",
    `the store ${path} cannot be opened: ${messageOf(error)}${lack}`,
    {
      cause: error,
      hint: `Central cannot run without writing. Look at the disk of ${dirname(path)} (df -h, df -i, and whether it is read-only) and make room; then it starts by itself. docs/operations/troubleshooting.md says what may go. The agents go on serving, and keep their records.`,
    },
  );
}

async function openIntact(
  path: string,
  now: () => Date,
  options: PrepareOptions,
): Promise<Store & AsyncDisposable> {
  const store = new Kysely<StoreTables>({
    dialect: new PacedSqliteDialect({ database: openSqlite(path, { sync: "full" }) }),
  });
  await sql`PRAGMA cache_size = ${sql.lit(-cacheKiB)}`.execute(store);
  const error = await prepareStore(store, now, options);
  if (error !== undefined) {
    const fault = await schemaFault(store, path, error);
    await store.destroy();
    throw fault;
  }
  return Object.assign(store, { [Symbol.asyncDispose]: async () => store.destroy() });
}

/** The last step that this release knows. */
export const storeLevel = levelOf(migrations);

/** Returns what is thrown where `prepareStore` failed. `where` names the store. */
export async function schemaFault(store: Store, where: string, error: unknown): Promise<unknown> {
  if (isNewer(error)) {
    const newest = (await newerStep(store)) ?? "another one";
    return new AccelError(
      "DATABASE_NEWER",
      `the store ${where} is of a newer release: its schema is at ${newest}, and this release knows ${storeLevel}`,
    );
  }
  if (isDiskFault(error))
    return new AccelError(
      "DISK_FAILED",
      `the store ${where} cannot be brought to this release: ${messageOf(error)}`,
    );
  return error;
}

/** Returns the newest step of a newer release that the store has; undefined where there is none. */
export async function newerStep(store: Store): Promise<string | undefined> {
  return newestUnknown(store, migrations);
}

/** Kysely has no class for it: the store has migrations that this release does not know. */
function isNewer(error: unknown): boolean {
  return messageOf(error).startsWith("corrupted migrations");
}

/** Tables of this release; on SQLite and on PostgreSQL alike. What kept them from being made; undefined: all are there. */
export async function migrateTables(store: Store): Promise<unknown> {
  const migrator = new Migrator({ db: store, provider: keptSteps(migrations) });
  const { error } = await migrator.migrateToLatest();
  return error;
}

/** Tables of this release, and an epoch. What kept the tables from being made; undefined: all is there. */
export async function prepareStore(
  store: Store,
  now: () => Date,
  { newer }: PrepareOptions = { newer: "refused" },
): Promise<unknown> {
  const error = await migrateTables(store);
  const mayBeUsed = newer === "used" && isNewer(error) && (await mayWorkOn(store, migrations));
  if (error !== undefined && !mayBeUsed) return error;
  await store
    .insertInto("store")
    .values({ id: 1, epoch: randomBytes(16).toString("hex"), when_created: now().toISOString() })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .execute();
  return undefined;
}

/** A second way into a store that is open: long reads see one moment of it and hold up no writer. */
export function openReader(path: string): Store & AsyncDisposable {
  // Opened by its first query: Kysely closes only what it has used, and one left open keeps the store's last close from emptying the WAL.
  const database = async (): Promise<Sqlite> => openSqlite(path, { sync: "full", readonly: true });
  const reader = new Kysely<StoreTables>({ dialect: new PacedSqliteDialect({ database }) });
  return Object.assign(reader, { [Symbol.asyncDispose]: async () => reader.destroy() });
}

/** The random id of this store: a restored or new store has another, so that agents resynchronize. */
export async function storeEpoch(store: Queries): Promise<string> {
  return (
    await store.selectFrom("store").select("epoch").where("id", "=", 1).executeTakeFirstOrThrow()
  ).epoch;
}
