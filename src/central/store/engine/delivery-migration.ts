// The step of the store that prepares bot sets for their way to the agents: what of a set the journals tell already, digests by bot,
// elements that live apart from their bot while it is imported or taken away.

import { sql } from "kysely";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import { isPostgres, runStatements, type Db } from "./statements.ts";

const pageRows = 10_000;

const toldSets = `
  ALTER TABLE bot_sets ADD COLUMN journaled_version integer DEFAULT 0 NOT NULL;
  ALTER TABLE bot_sets ADD COLUMN pending integer DEFAULT 0 NOT NULL;
  ALTER TABLE bot_sets ADD COLUMN meant_from integer DEFAULT 0 NOT NULL;
  UPDATE bot_sets SET journaled_version = version;
  CREATE TABLE bot_changes (
    id $id, bot_set_id integer → bot_sets, is_added integer NOT NULL, bot text NOT NULL, range text NOT NULL
  );
  CREATE INDEX bot_changes_bot_set_id ON bot_changes (bot_set_id);
  CREATE TABLE bot_set_contents (
    digest text NOT NULL, blob text NOT NULL, when_created text NOT NULL,
    CONSTRAINT bot_set_contents_pk PRIMARY KEY (digest)
  );
  ALTER TABLE bots ADD COLUMN count integer DEFAULT 0 NOT NULL;
  ALTER TABLE bots ADD COLUMN digest text DEFAULT '${emptySetDigest}' NOT NULL;
`;

/** No reference to the bot: a million rows that go with it would block everything; `dead_bots` says whose are swept in the background. */
const elementsApart = `
  CREATE TABLE bot_elements (
    bot_id integer NOT NULL, range text NOT NULL, family integer NOT NULL, first $blob NOT NULL,
    last $blob NOT NULL, bot_set_id integer NOT NULL,
    CONSTRAINT bot_elements_pk PRIMARY KEY (bot_id, range)
  )`;
const elementsMoved = `
  INSERT INTO bot_elements (bot_id, range, family, first, last, bot_set_id)
    SELECT bot_id, range, family, first, last, bot_set_id FROM bot_elements_before;
  DROP TABLE bot_elements_before`;
const sweeping = `
  CREATE INDEX bot_elements_bot_set_id_family_first ON bot_elements (bot_set_id, family, first);
  CREATE TABLE dead_bots (bot_id integer NOT NULL, CONSTRAINT dead_bots_pk PRIMARY KEY (bot_id))`;

export async function botDelivery(db: Db): Promise<void> {
  await runStatements(db, toldSets);
  await digestsByBot(db);
  // On PostgreSQL constraints keep their names, and there was no release before this step: no elements either.
  if (isPostgres(db)) await runStatements(db, `DROP TABLE bot_elements; ${elementsApart}`);
  else
    await runStatements(
      db,
      `ALTER TABLE bot_elements RENAME TO bot_elements_before; ${elementsApart}; ${elementsMoved}`,
    );
  await runStatements(db, sweeping);
  // Whichever way a bot goes, by a removal or with its domain or customer.
  if (isPostgres(db)) return diesOnPostgres(db);
  await sql`CREATE TRIGGER bots_die AFTER DELETE ON bots BEGIN
    INSERT INTO dead_bots (bot_id) VALUES (old.id); END`.execute(db);
}

async function digestsByBot(db: Db): Promise<void> {
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

async function diesOnPostgres(db: Db): Promise<void> {
  await sql`CREATE FUNCTION bots_die() RETURNS trigger LANGUAGE plpgsql AS ${sql.lit("BEGIN INSERT INTO dead_bots (bot_id) VALUES (old.id); RETURN NULL; END")}`.execute(
    db,
  );
  await sql`CREATE TRIGGER bots_die AFTER DELETE ON bots FOR EACH ROW EXECUTE FUNCTION bots_die()`.execute(
    db,
  );
}
