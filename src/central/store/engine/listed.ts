// A list of rows as something that a statement selects from: thousands of rows are written by one statement.
//
// PostgreSQL is given an array for each column, whatever the number of rows: values of their own would cost it more to read than to write. SQLite is given the values.

import { sql, type RawBuilder } from "kysely";
import type { Queries, Tx } from "./database.ts";
import { pacedParts } from "./parts.ts";
import type { StoreTables } from "./schema.ts";
import { isPostgres } from "./statements.ts";

export type ColumnTypes = Readonly<Record<string, "integer" | "bigint" | "text">>;
type RowOf<Types extends ColumnTypes> = {
  readonly [Column in keyof Types]: Types[Column] extends "text" ? string : number;
};

/** The rows of one statement: 2 to 3 ms on SQLite, some 100 ms on PostgreSQL. */
export function rowsAtOnce(db: Queries): number {
  return isPostgres(db) ? 5_000 : 250;
}

/** Stands behind FROM, with a name of its own behind it. The rows must be some, and their texts without NUL. */
export function listed<Types extends ColumnTypes>(
  db: Queries,
  types: Types,
  rows: readonly RowOf<Types>[],
): RawBuilder<unknown> {
  const columns = Object.keys(types);
  const valueOf = (row: RowOf<Types>, column: string): unknown => row[column];
  if (isPostgres(db)) {
    const arrays = columns.map(
      (column) =>
        sql`${rows.map((row) => valueOf(row, column))}::${sql.raw(types[column] ?? "text")}[]`,
    );
    const names = sql.join(columns.map((column) => sql.ref(column)));
    return sql`(SELECT * FROM unnest(${sql.join(arrays)}) AS arrays (${names}))`;
  }
  const values = rows.map(
    (row) => sql`(${sql.join(columns.map((column) => sql`${valueOf(row, column)}`))})`,
  );
  const names = columns.map(
    (column, no) => sql`${sql.raw(`column${no + 1}`)} AS ${sql.ref(column)}`,
  );
  return sql`(SELECT ${sql.join(names)} FROM (VALUES ${sql.join(values)}))`;
}

/** Inserts the rows, however many, with turns of the event loop between. `conflict`: what stands behind them, as `ON CONFLICT …`. */
export async function insertListed<Types extends ColumnTypes>(
  tx: Tx,
  table: keyof StoreTables,
  types: Types,
  rows: readonly RowOf<Types>[],
  conflict: RawBuilder<unknown> = sql``,
): Promise<void> {
  const columns = sql.join(Object.keys(types).map((column) => sql.ref(column)));
  for await (const part of pacedParts(rows, rowsAtOnce(tx)))
    // Without WHERE, SQLite would take ON for a part of a join.
    await sql`
      INSERT INTO ${sql.table(table)} (${columns})
      SELECT ${columns} FROM ${listed(tx, types, part)} AS given WHERE true ${conflict}
    `.execute(tx);
}
