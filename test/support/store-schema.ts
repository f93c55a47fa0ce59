// What of a store a release before relies on, as the database itself tells it, and what a step has done to that.

import type { Sqlite } from "../../src/base/sqlite.ts";

type Column = {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: string | null;
  readonly pk: number;
};
type Table = {
  readonly columns: ReadonlyMap<string, Column>;
  /** Columns of unique indexes, joined. */
  readonly unique: readonly string[];
  readonly triggers: readonly string[];
  /** `table: what happens when its row goes`. */
  readonly references: readonly string[];
};
export type StoreSchema = ReadonlyMap<string, Table>;

export function schemaOf(db: Sqlite): StoreSchema {
  const names = db
    .prepare<[], { name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )
    .all();
  return new Map(names.map(({ name }) => [name, tableOf(db, name)]));
}

function tableOf(db: Sqlite, name: string): Table {
  const columns = db
    .prepare<[string], Column>("SELECT * FROM pragma_table_info(?)")
    .all(name)
    .map((column) => [column.name, column] as const);
  const unique = db
    .prepare<[string], { columns: string }>(
      `SELECT (SELECT group_concat(name) FROM pragma_index_info(list.name)) AS columns
       FROM pragma_index_list(?) AS list WHERE list."unique" = 1`,
    )
    .all(name);
  const triggers = db
    .prepare<[string], { sql: string }>(
      "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?",
    )
    .all(name);
  const references = db
    .prepare<[string], { table: string; on_delete: string }>(
      "SELECT * FROM pragma_foreign_key_list(?)",
    )
    .all(name);
  return {
    columns: new Map(columns),
    unique: unique.map((one) => one.columns),
    triggers: triggers.map((one) => one.sql),
    references: references.map((one) => `${one.table}: ${one.on_delete}`),
  };
}

/** Returns what a release that knows only `before` would meet, in words; nothing if it is not disturbed. */
export function whatBreaks(before: StoreSchema, after: StoreSchema): readonly string[] {
  return [
    ...[...before].flatMap(([name, table]) => {
      const now = after.get(name);
      return now === undefined ? [`${name} is gone`] : brokenOf(name, table, now);
    }),
    // A row that the release before removes must not be held by one of which it does not know.
    ...[...after].flatMap(([name, { references }]) =>
      references
        .filter((one) => !/: (?:CASCADE|SET NULL)$/.test(one))
        .filter((one) => !before.get(name)?.references.includes(one))
        .map((one) => `${name} holds rows of ${one}`),
    ),
  ];
}

function brokenOf(name: string, before: Table, now: Table): readonly string[] {
  const { columns } = now;
  return [
    ...[...before.columns].flatMap(([column, was]) => {
      const is = columns.get(column);
      if (is === undefined) return [`${name}.${column} is gone`];
      return JSON.stringify({ ...is }) === JSON.stringify({ ...was })
        ? []
        : [`${name}.${column} is another`];
    }),
    ...[...columns.values()]
      .filter(
        (one) => !before.columns.has(one.name) && one.notnull === 1 && one.dflt_value === null,
      )
      .map((one) => `${name}.${one.name} must be filled`),
    ...now.unique
      .filter((one) => !before.unique.includes(one))
      .map((one) => `${name} must be unique by ${one}`),
    ...now.triggers
      .filter((one) => !before.triggers.includes(one))
      .map(() => `${name} has another trigger`),
  ];
}
