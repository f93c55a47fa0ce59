// The steps of the store that let operators lock users, and marks of many elements be written beside what is in force.

import { index, type Db } from "./migration-tables.ts";

export async function lockedUsers(db: Db): Promise<void> {
  await db.schema.alterTable("users").addColumn("when_locked", "text").execute();
}

/** With an index that finds the bots that only an import makes. */
export async function heldBots(db: Db): Promise<void> {
  await db.schema.alterTable("dead_bots").addColumn("held_until", "text").execute();
  await index(db, "bots", ["bot_set_id", "count"]);
}
