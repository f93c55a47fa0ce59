// Later steps of the store about bots.

import { sql } from "kysely";
import { index, type Db } from "./migration-tables.ts";

/** Elements know their set, so that an address is looked up by a few index seeks however many elements there are. */
export async function elementsBySet(db: Db): Promise<void> {
  await db.schema
    .alterTable("bot_elements")
    .addColumn("bot_set_id", "integer", (column) => column.notNull().defaultTo(0))
    .execute();
  await sql`UPDATE bot_elements SET bot_set_id = (SELECT bot_set_id FROM bots WHERE bots.id = bot_elements.bot_id)`.execute(
    db,
  );
  await db.schema.dropIndex("bot_elements_family_first").execute();
  await index(db, "bot_elements", ["bot_set_id", "family", "first"]);
}
