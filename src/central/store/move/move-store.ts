// Moves the store of a stopped central from its SQLite file to a PostgreSQL.
//
//   begun      the tables are there, without a row; `store_move` remembers which store comes in, and how far it is
//   copied     a page of rows and how far it goes are one transaction: whatever ends it, it goes on behind the last page
//   counted    each table gives the next id where the file would
//   compared   every row of both, in the order of its key
//
// `store_move` keeps a central from serving what is not whole. It goes when the mark in the state directory says that the store was moved.

import { isDeepStrictEqual } from "node:util";
import { sql } from "kysely";
import { AccelError, messageOf } from "../../../core/faults.ts";
import { migrateTables, storeEpoch, type Store } from "../engine/database.ts";
import { differingColumn, tablesFault, tablesInOrder } from "./move-plan.ts";
import type { StoredRow, SourceFile, SourceTable } from "./source-file.ts";

export type MoveOptions = {
  readonly source: SourceFile;
  /** The store of `source` as central opens it. */
  readonly sourceStore: Store;
  readonly target: Store;
  /** Names the target in messages. */
  readonly where: string;
  /** Called when it is known that the move can begin, before the first row: what it writes keeps central from serving the file. */
  readonly onBegin: (epoch: string) => Promise<void>;
  /** Called after each table, with how many rows it has. */
  readonly onTable: (step: "copied" | "compared", name: string, rows: number) => void;
  readonly stop: AbortSignal;
};

export type MoveFacts = {
  readonly epoch: string;
  readonly tables: number;
  readonly rows: number;
  /** Whether it went on where a move before had been cut off. */
  readonly isResumed: boolean;
};

/**
 * Moves all rows and compares them. Throws STORE_NOT_EMPTY for a database that holds anything else, MOVE_FAILED where a row cannot be held or differs, and the reason
 * of `stop`.
 */
export async function moveStore(options: MoveOptions): Promise<MoveFacts> {
  const { source, sourceStore, target, where, onTable, stop } = options;
  const epoch = await storeEpoch(sourceStore);
  const tables = tablesInOrder(source.tables());
  const isResumed = await begin(options, epoch, tables);
  let rows = 0;
  for (const table of tables) {
    await copyTable(target, source, table, stop);
    onTable("copied", table.name, source.count(table));
  }
  for (const table of tables) await countOn(target, table);
  for (const table of tables) {
    const count = await compareTable(target, source, table, stop);
    rows += count;
    onTable("compared", table.name, count);
  }
  const moved = await storeEpoch(target);
  if (moved !== epoch)
    throw new AccelError("MOVE_FAILED", `${where} has the epoch ${moved}, the file ${epoch}`);
  return { epoch, tables: tables.length, rows, isResumed };
}

/** Returns whether it goes on. */
async function begin(
  { sourceStore, target, where, onBegin }: MoveOptions,
  epoch: string,
  tables: readonly SourceTable[],
): Promise<boolean> {
  const under = await epochUnderWay(target);
  if (under !== undefined && under !== epoch)
    throw new AccelError(
      "STORE_NOT_EMPTY",
      `${where} holds part of another store (epoch ${under}), whose move was cut off`,
    );
  const isResumed = under === epoch;
  const error = isResumed ? undefined : await migrateTables(target);
  if (error !== undefined) throw error;
  const steps = await Promise.all([sourceStore, target].map(migrationsOf));
  const fault = isDeepStrictEqual(steps[0], steps[1])
    ? tablesFault(tables, await columnsOf(target))
    : "the move was begun by another release; --abandon takes it back";
  if (fault !== undefined) throw new AccelError("MOVE_FAILED", `${where}: ${fault}`);
  if (isResumed) {
    await onBegin(epoch);
    return true;
  }
  for (const { name } of tables) {
    const { rows } = await sql`SELECT 1 FROM ${sql.table(name)} LIMIT 1`.execute(target);
    if (rows.length > 0)
      throw new AccelError("STORE_NOT_EMPTY", `${where} is in use: there are rows in ${name}`);
  }
  await onBegin(epoch);
  await target.transaction().execute(async (tx) => {
    await sql`
      CREATE TABLE store_move (
        name text PRIMARY KEY, epoch text NOT NULL, last_row bigint NOT NULL, is_copied integer NOT NULL
      )
    `.execute(tx);
    for (const { name } of tables)
      await sql`INSERT INTO store_move VALUES (${name}, ${epoch}, -1, 0)`.execute(tx);
  });
  return false;
}

async function migrationsOf(store: Store): Promise<readonly unknown[]> {
  return (await sql`SELECT name FROM kysely_migration ORDER BY name`.execute(store)).rows;
}

/** The epoch of the store that is being moved into this database; undefined: none is. */
export async function epochUnderWay(target: Store): Promise<string | undefined> {
  const { rows: found } = await sql<{ there: boolean }>`
    SELECT to_regclass('store_move') IS NOT NULL AS there
  `.execute(target);
  if (found[0]?.there !== true) return undefined;
  const { rows } = await sql<{ epoch: string }>`SELECT epoch FROM store_move LIMIT 1`.execute(
    target,
  );
  return rows[0]?.epoch ?? "unknown";
}

/** Ends the move: from here on a central may serve this database. */
export async function endMove(target: Store): Promise<void> {
  await sql`DROP TABLE IF EXISTS store_move`.execute(target);
}

/** Takes back a move that is under way: the database is as empty as it was. */
export async function takeMoveBack(target: Store): Promise<void> {
  const kept = ["kysely_migration", "kysely_migration_lock", "store_steps", "store_move"];
  const names = [...(await columnsOf(target)).keys(), ...kept];
  await target.transaction().execute(async (tx) => {
    const { rows: triggered } = await sql<{ name: string }>`
      SELECT DISTINCT proname AS name FROM pg_trigger
      JOIN pg_proc ON pg_proc.oid = tgfoid JOIN pg_class ON pg_class.oid = tgrelid
      WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace
    `.execute(tx);
    for (const name of names)
      await sql`DROP TABLE IF EXISTS ${sql.table(name)} CASCADE`.execute(tx);
    for (const { name } of triggered) await sql`DROP FUNCTION ${sql.ref(name)}`.execute(tx);
  });
}

/** The tables of the store in PostgreSQL, with their columns. */
async function columnsOf(target: Store): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { rows } = await sql<{ name: string; column: string }>`
    SELECT table_name AS name, column_name AS column FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name NOT LIKE 'kysely\\_%' AND table_name NOT IN ('store_move', 'store_steps')
  `.execute(target);
  const columns = new Map<string, Set<string>>();
  for (const { name, column } of rows)
    columns.set(name, (columns.get(name) ?? new Set()).add(column));
  return columns;
}

async function copyTable(
  target: Store,
  source: SourceFile,
  table: SourceTable,
  stop: AbortSignal,
): Promise<void> {
  const { name, columns } = table;
  const { rows: found } = await sql<{ last_row: number; is_copied: number }>`
    SELECT last_row, is_copied FROM store_move WHERE name = ${name}
  `.execute(target);
  if (found[0]?.is_copied === 1) return;
  const names = sql.join(columns.map((column) => sql.ref(column)));
  for (const { rows, last } of source.pagesAfter(table, found[0]?.last_row ?? -1)) {
    stop.throwIfAborted();
    const values = sql.join(
      rows.map((row) => sql`(${sql.join(columns.map((column) => row[column]))})`),
    );
    try {
      await target.transaction().execute(async (tx) => {
        await sql`INSERT INTO ${sql.table(name)} (${names}) VALUES ${values}`.execute(tx);
        await sql`UPDATE store_move SET last_row = ${last} WHERE name = ${name}`.execute(tx);
      });
    } catch (error) {
      if (error instanceof AccelError) throw error;
      throw new AccelError(
        "MOVE_FAILED",
        `rows of ${name} up to row ${last} of the file cannot be held: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }
  await sql`UPDATE store_move SET is_copied = 1 WHERE name = ${name}`.execute(target);
}

/** An id that was given once is never given again, as in the file. */
async function countOn(target: Store, { name, lastId }: SourceTable): Promise<void> {
  if (lastId === undefined) return;
  await sql`
    SELECT setval(pg_get_serial_sequence(${name}, 'id'), ${Math.max(1, lastId)}, ${lastId > 0})
  `.execute(target);
}

/** Returns how many rows there are. */
async function compareTable(
  target: Store,
  source: SourceFile,
  table: SourceTable,
  stop: AbortSignal,
): Promise<number> {
  const { name, columns, key } = table;
  const keys = sql.join(key.map((column) => sql.ref(column)));
  const valuesOf = (row: StoredRow | undefined) => sql.join(key.map((column) => row?.[column]));
  let count = 0;
  for (const rows of source.pagesByKey(table)) {
    stop.throwIfAborted();
    const { rows: there } = await sql<StoredRow>`
      SELECT ${sql.join(columns.map((column) => sql.ref(column)))} FROM ${sql.table(name)}
      WHERE (${keys}) >= (${valuesOf(rows[0])}) AND (${keys}) <= (${valuesOf(rows.at(-1))})
      ORDER BY ${keys}
    `.execute(target);
    for (const [at, row] of rows.entries()) {
      const other = there[at];
      const column = other === undefined ? "it" : differingColumn(columns, row, other);
      if (column !== undefined || there.length !== rows.length)
        throw new AccelError(
          "MOVE_FAILED",
          `${name} differs at ${JSON.stringify(key.map((one) => row[one]))}: ${other === undefined ? "it is not there" : (column ?? "a row more")}`,
        );
    }
    count += rows.length;
  }
  const { rows: counted } = await sql<{ count: number }>`
    SELECT count(*) AS count FROM ${sql.table(name)}
  `.execute(target);
  if (counted[0]?.count !== count)
    throw new AccelError(
      "MOVE_FAILED",
      `${name} has ${counted[0]?.count ?? 0} rows in PostgreSQL and ${count} in the file`,
    );
  return count;
}
