// The step of the store that prepares bot sets for their way to the agents: what of a set the journals tell already, digests by bot,
// elements that live apart from their bot while it is imported or taken away.

import { sql } from "kysely";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import { index, isPostgres, table, type Db } from "./migration-tables.ts";

const pageRows = 10_000;

export async function botDelivery(db: Db): Promise<void> {
  for (const column of ["journaled_version", "pending", "meant_from"])
    await db.schema
      .alterTable("bot_sets")
      .addColumn(column, "integer", (added) => added.notNull().defaultTo(0))
      .execute();
  await sql`UPDATE bot_sets SET journaled_version = version`.execute(db);
  await table(db, "bot_changes", {
    id: "id",
    bot_set_id: "→ bot_sets",
    is_added: "integer!",
    bot: "text!",
    range: "text!",
  }).execute();
  await index(db, "bot_changes", ["bot_set_id"]);
  await table(db, "bot_set_contents", { digest: "text!", blob: "text!", when_created: "text!" })
    .addPrimaryKeyConstraint("bot_set_contents_pk", ["digest"])
    .execute();
  await digestsByBot(db);
  await elementsApart(db);
}

async function digestsByBot(db: Db): Promise<void> {
  await db.schema
    .alterTable("bots")
    .addColumn("count", "integer", (added) => added.notNull().defaultTo(0))
    .execute();
  await db.schema
    .alterTable("bots")
    .addColumn("digest", "text", (added) => added.notNull().defaultTo(emptySetDigest))
    .execute();
  const { rows: bots } = await sql<{ id: number; name: string }>`SELECT id, name FROM bots`.execute(
    db,
  );
  for (const { id, name } of bots) {
    let [count, digest, last] = [0, emptySetDigest, ""];
    for (;;) {
      const page = sql<{
        range: string;
      }>`SELECT range FROM bot_elements WHERE bot_id = ${id} AND range > ${last} ORDER BY range LIMIT ${pageRows}`;
      const { rows } = await page.execute(db);
      const elements = rows.map(({ range }): SetElement => ({ bot: name, range }));
      digest = changedSetDigest(digest, elements, []);
      count += rows.length;
      last = rows.at(-1)?.range ?? "";
      if (rows.length < pageRows) break;
    }
    await sql`UPDATE bots SET count = ${count}, digest = ${digest} WHERE id = ${id}`.execute(db);
  }
}

/** No reference to the bot: a million rows that go with it would block everything; `dead_bots` says whose are swept in the background. */
async function elementsApart(db: Db): Promise<void> {
  // On PostgreSQL constraints keep their names, and there was no release before this step: no elements either.
  if (isPostgres(db)) await db.schema.dropTable("bot_elements").execute();
  else await sql`ALTER TABLE bot_elements RENAME TO bot_elements_before`.execute(db);
  await table(db, "bot_elements", {
    bot_id: "integer!",
    range: "text!",
    family: "integer!",
    first: "blob!",
    last: "blob!",
    bot_set_id: "integer!",
  })
    .addPrimaryKeyConstraint("bot_elements_pk", ["bot_id", "range"])
    .execute();
  if (!isPostgres(db)) {
    await sql`INSERT INTO bot_elements (bot_id, range, family, first, last, bot_set_id)
    SELECT bot_id, range, family, first, last, bot_set_id FROM bot_elements_before`.execute(db);
    await db.schema.dropTable("bot_elements_before").execute();
  }
  await index(db, "bot_elements", ["bot_set_id", "family", "first"]);
  await table(db, "dead_bots", { bot_id: "integer!" })
    .addPrimaryKeyConstraint("dead_bots_pk", ["bot_id"])
    .execute();
  // Whichever way a bot goes, by a removal or with its domain or customer.
  if (isPostgres(db)) return diesOnPostgres(db);
  await sql`CREATE TRIGGER bots_die AFTER DELETE ON bots BEGIN
    INSERT INTO dead_bots (bot_id) VALUES (old.id); END`.execute(db);
}

async function diesOnPostgres(db: Db): Promise<void> {
  await sql`CREATE FUNCTION bots_die() RETURNS trigger LANGUAGE plpgsql AS ${sql.lit("BEGIN INSERT INTO dead_bots (bot_id) VALUES (old.id); RETURN NULL; END")}`.execute(
    db,
  );
  await sql`CREATE TRIGGER bots_die AFTER DELETE ON bots FOR EACH ROW EXECUTE FUNCTION bots_die()`.execute(
    db,
  );
}
