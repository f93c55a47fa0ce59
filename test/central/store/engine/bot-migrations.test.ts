// The step of the store that lets elements know their set: each keeps what it was, and a part of the step that fails fails all of it.

import { Kysely, sql } from "kysely";
import { expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { migrations } from "../../../../src/central/store/engine/migrations.ts";
import { PacedSqliteDialect } from "../../../../src/central/store/engine/paced-dialect.ts";

/** As the tables were before. */
async function before() {
  const database = openSqlite(":memory:", { sync: "full" });
  const db = new Kysely<unknown>({ dialect: new PacedSqliteDialect({ database }) });
  await sql`CREATE TABLE bots (id integer, bot_set_id integer)`.execute(db);
  await sql`CREATE TABLE bot_elements (bot_id integer, family integer, first blob)`.execute(db);
  return Object.assign(db, { [Symbol.asyncDispose]: async () => db.destroy() });
}

const elementsBySet = migrations["0006-bot-elements-by-set"];
const indexName = "bot_elements_family_first";

test("elements know the set of their bot, and are looked up by it", async () => {
  await using db = await before();
  await sql`CREATE INDEX ${sql.id(indexName)} ON bot_elements (family, first)`.execute(db);
  await sql`INSERT INTO bots VALUES (1, 7), (2, 8)`.execute(db);
  await sql`INSERT INTO bot_elements VALUES (1, 4, x'01'), (2, 4, x'02'), (2, 6, x'03')`.execute(
    db,
  );
  await elementsBySet.up(db);
  const { rows } = await sql`SELECT bot_id, bot_set_id FROM bot_elements ORDER BY first`.execute(
    db,
  );
  expect(rows).toEqual([
    { bot_id: 1, bot_set_id: 7 },
    { bot_id: 2, bot_set_id: 8 },
    { bot_id: 2, bot_set_id: 8 },
  ]);
  const indexes = await sql<{ readonly columns: string }>`
    SELECT (SELECT group_concat(name) FROM pragma_index_info(i.name)) AS columns
    FROM pragma_index_list('bot_elements') AS i`.execute(db);
  expect(indexes.rows).toEqual([{ columns: "bot_set_id,family,first" }]);
});

test("where the index that gives way cannot be dropped the step is not taken as done", async () => {
  await using db = await before();
  await expect(elementsBySet.up(db)).rejects.toThrow(`no such index: ${indexName}`);
});
