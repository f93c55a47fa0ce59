// The SQLite file of a store, read row by row for its move. Nobody writes it meanwhile: the caller has locked its directory.

import { openSqlite, type Sqlite } from "../../../base/sqlite.ts";

export type StoredRow = Readonly<Record<string, unknown>>;

export type SourceTable = {
  readonly name: string;
  /** In the order in which the table was made. */
  readonly columns: readonly string[];
  /** The columns of the primary key. */
  readonly key: readonly string[];
  /** The tables that its rows refer to. */
  readonly refersTo: readonly string[];
  /** The highest id that was ever given, also of a row that is gone; undefined for a table that gave none. */
  readonly lastId: number | undefined;
};

/** Rows one after the other, each with its place beside its columns, and the place of the last of them. */
export type SourcePage = { readonly rows: readonly StoredRow[]; readonly last: number };

/** A page is as large as a statement bears, and no larger than memory likes. */
const pageValuesMax = 20_000;
const pageRowsMax = 1_000;
const pageCharsMax = 8 * 2 ** 20;

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export class SourceFile implements Disposable {
  readonly #db: Sqlite;

  /** Opens the file of a store that is at this release. */
  constructor(path: string) {
    this.#db = openSqlite(path, { sync: "full", readonly: true });
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  /** The tables of the store; what SQLite and the migrations keep for themselves is left out. */
  tables(): readonly SourceTable[] {
    const names = this.#db
      .prepare(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'kysely\\_%' ESCAPE '\\' AND name <> 'store_steps' ORDER BY name",
      )
      .pluck()
      .all();
    const lastIds = this.#db.prepare("SELECT seq FROM sqlite_sequence WHERE name = ?").pluck();
    return names.map(String).map((name) => {
      const columns = this.#db
        .prepare(`PRAGMA table_info(${quoted(name)})`)
        .all()
        .map(rowOf);
      const keys = this.#db
        .prepare(`PRAGMA foreign_key_list(${quoted(name)})`)
        .all()
        .map(rowOf);
      const lastId = lastIds.get(name);
      return {
        name,
        columns: columns.map((column) => String(column["name"])),
        key: columns
          .filter(({ pk }) => Number(pk) > 0)
          .toSorted((one, other) => Number(one["pk"]) - Number(other["pk"]))
          .map((column) => String(column["name"])),
        refersTo: [...new Set(keys.map(({ table }) => String(table)))],
        lastId: lastId === undefined ? undefined : Number(lastId),
      };
    });
  }

  count({ name }: SourceTable): number {
    return Number(
      this.#db
        .prepare(`SELECT count(*) FROM ${quoted(name)}`)
        .pluck()
        .get(),
    );
  }

  /** Yields the rows behind a place in the order of the file. Each page's `last` is the place behind it. */
  *pagesAfter(table: SourceTable, after: number): Generator<SourcePage> {
    const columns = table.columns.map(quoted).join(", ");
    const text = `SELECT rowid AS "rowid of this row", ${columns} FROM ${quoted(table.name)} WHERE rowid > ? ORDER BY rowid`;
    for (const rows of pages(table, this.#db.prepare(text).iterate(after))) {
      const last = Number(rows.at(-1)?.["rowid of this row"] ?? after);
      yield { rows, last };
    }
  }

  /** Yields all rows in the order of their keys. */
  *pagesByKey(table: SourceTable): Generator<readonly StoredRow[]> {
    const order = table.key.map(quoted).join(", ");
    const text = `SELECT ${table.columns.map(quoted).join(", ")} FROM ${quoted(table.name)} ORDER BY ${order}`;
    yield* pages(table, this.#db.prepare(text).iterate());
  }
}

function rowOf(raw: unknown): StoredRow {
  return Object(raw) as StoredRow;
}

function* pages({ columns }: SourceTable, all: Iterable<unknown>): Generator<readonly StoredRow[]> {
  const rowsMax = Math.min(pageRowsMax, Math.floor(pageValuesMax / columns.length));
  let page: StoredRow[] = [];
  let chars = 0;
  for (const raw of all) {
    const row = rowOf(raw);
    page.push(row);
    for (const value of Object.values(row))
      if (typeof value === "string" || Buffer.isBuffer(value)) chars += value.length;
    if (page.length < rowsMax && chars < pageCharsMax) continue;
    yield page;
    [page, chars] = [[], 0];
  }
  if (page.length > 0) yield page;
}
