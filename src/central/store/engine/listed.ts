// A list of rows as something that a statement selects from: thousands of rows are written by one statement.
//
// PostgreSQL is given an array for each column, whatever the number of rows: values of their own would cost it more to read than to write. SQLite is given the values.

import { sql, type RawBuilder } from "kysely";
import type { Queries, Tx } from "./database.ts";
import { pacedParts } from "./parts.ts";
import type { StoreTables } from "./schema.ts";
import { isPostgres } from "./statements.ts";

/** `text?` is a text that may be null. */
export type ColumnTypes = Readonly<Record<string, "integer" | "bigint" | "text" | "text?">>;
type ValueOf<Type> = Type extends "text?" ? string | null : Type extends "text" ? string : number;
export type RowOf<Types extends ColumnTypes> = {
  readonly [Column in keyof Types]: ValueOf<Types[Column]>;
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
    const arrays = columns.map((column) => {
      const type = types[column]?.replace("?", "") ?? "text";
      return sql`${rows.map((row) => valueOf(row, column))}::${sql.raw(type)}[]`;
    });
    const names = sql.join(columns.map((column) => sql.ref(column)));
    return sql`(SELECT * FROM unnest(${sql.join(arrays)}) AS arrays (${names}))`;
  }
  const names = columns.map(
    (column, no) => sql`${sql.raw(`column${no + 1}`)} AS ${sql.ref(column)}`,
  );
  return sql`(SELECT ${sql.join(names)} FROM ${valuesOf(rows, columns)})`;
}

/** As one piece of SQL with all values: a piece for each value would take longer to put together than SQLite takes to write the rows. */
function valuesOf(
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly string[],
): RawBuilder<unknown> {
  const between = columns.map((_, no): string => (no === 0 ? "), (" : ", "));
  const texts = rows.flatMap(() => between);
  texts[0] = "(VALUES (";
  texts.push("))");
  const values = rows.flatMap((row) => columns.map((column) => row[column]));
  return sql(Object.assign(texts, { raw: texts }), ...values);
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
