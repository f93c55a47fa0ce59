// Opening central's store: SQLite in WAL with full sync, through Kysely; one writer at a time.

import { randomBytes } from "node:crypto";
import { Kysely, sql, type Transaction } from "kysely";
import { Migrator } from "kysely/migration";
import { isCorruption, isDiskFault, openSqlite, type Sqlite } from "../../../base/sqlite.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import { migrations } from "./migrations.ts";
import { PacedSqliteDialect } from "./paced-dialect.ts";
import type { StoreTables } from "./schema.ts";

export type Store = Kysely<StoreTables>;
/** The transaction that every query function takes: a part of one, or the store itself for single reads. */
export type Tx = Transaction<StoreTables>;
export type Queries = Store | Tx;

/** The cache of pages: the indexes of a million elements are 100 MiB. */
const cacheKiB = 65_536;

/** Creates and migrates. Throws DATABASE_NEWER for a store of a newer release, STORE_DAMAGED for what is no intact database, DISK_FAILED for a disk that refuses. */
export async function openStore(path: string, now: () => Date): Promise<Store & AsyncDisposable> {
  try {
    return await openIntact(path, now);
  } catch (error) {
    // A disk without room for the files beside it (32 KiB) says that it cannot be read.
    if (isDiskFault(error) && !(error instanceof AccelError))
      throw new AccelError(
        "DISK_FAILED",
        `the store ${path} cannot be opened: ${messageOf(error)}`,
        {
          cause: error,
        },
      );
    if (!isCorruption(error)) throw error;
    throw new AccelError("STORE_DAMAGED", `the store ${path} is damaged: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function openIntact(path: string, now: () => Date): Promise<Store & AsyncDisposable> {
  const store = new Kysely<StoreTables>({
    dialect: new PacedSqliteDialect({ database: openSqlite(path, { sync: "full" }) }),
  });
  await sql`PRAGMA cache_size = ${sql.lit(-cacheKiB)}`.execute(store);
  const error = await prepareStore(store, now);
  if (error !== undefined) {
    const newest = isNewer(error) ? await newestMigration(store) : undefined;
    await store.destroy();
    const text = `the store ${path} cannot be brought to this release: ${messageOf(error)}`;
    if (newest !== undefined)
      throw new AccelError(
        "DATABASE_NEWER",
        `the store ${path} is of a newer release: its schema is at ${newest}, and this release knows ${lastMigration}`,
      );
    if (isDiskFault(error)) throw new AccelError("DISK_FAILED", text);
    throw error;
  }
  return Object.assign(store, { [Symbol.asyncDispose]: async () => store.destroy() });
}

const lastMigration = Object.keys(migrations).toSorted().at(-1) ?? "nothing";

/** Returns the newest step that was done to the store. */
async function newestMigration(store: Store): Promise<string> {
  const { rows } = await sql<{ name: string }>`
    SELECT name FROM kysely_migration ORDER BY name DESC LIMIT 1
  `.execute(store);
  return rows[0]?.name ?? "another one";
}

/** Kysely has no class for it: the store has migrations that this release does not know. */
function isNewer(error: unknown): boolean {
  return messageOf(error).startsWith("corrupted migrations");
}

/** Tables of this release, and an epoch; on SQLite and on PostgreSQL alike. What kept the tables from being made; undefined: all is there. */
export async function prepareStore(store: Store, now: () => Date): Promise<unknown> {
  const migrator = new Migrator({
    db: store,
    provider: { getMigrations: async () => ({ ...migrations }) },
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) return error;
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
