// The short hand in which migrations write tables and indexes, in the words of the database that they run on: SQLite, or PostgreSQL 15 and newer.

import { PostgresAdapter, sql, type CreateTableBuilder, type Kysely } from "kysely";

// Migrations see the schema of their own day, hence the untyped handle: what follows must not change with schema.ts.
export type Db = Kysely<unknown>;
type Type = "text" | "integer" | "bigint" | "blob";
/** `!` is NOT NULL; `id` is the counting primary key; `→ table` a reference that is deleted with its row. */
type Column = Type | `${Type}!` | "id" | `→ ${string}`;

export function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

export function table<const C extends Record<string, Column>>(
  db: Db,
  name: string,
  columns: C,
): CreateTableBuilder<string, keyof C & string> {
  let builder: CreateTableBuilder<string, string> = db.schema.createTable(name);
  for (const [column, kind] of Object.entries(columns)) {
    if (kind === "id") {
      builder = isPostgres(db)
        ? builder.addColumn(column, "integer", (c) => c.primaryKey().generatedByDefaultAsIdentity())
        : builder.addColumn(column, "integer", (c) => c.primaryKey().autoIncrement());
    } else if (kind.startsWith("→ ")) {
      const target = `${kind.slice(2)}.id`;
      builder = builder.addColumn(column, column === "clear_id" ? "text" : "integer", (c) =>
        c.notNull().references(target).onDelete("cascade"),
      );
    } else {
      const type =
        kind.replace("!", "") === "blob"
          ? isPostgres(db)
            ? sql`bytea`
            : sql`blob`
          : (kind.replace("!", "") as "text" | "integer" | "bigint");
      builder = builder.addColumn(column, type, (c) => (kind.endsWith("!") ? c.notNull() : c));
    }
  }
  // The loop added exactly the keys of `columns`.
  return builder;
}

export async function index(db: Db, on: string, columns: readonly string[]): Promise<void> {
  await db.schema
    .createIndex([on, ...columns].join("_"))
    .on(on)
    .columns([...columns])
    .execute();
}
