// The step of the store by which each instance's position is kept as it told it, with the store and the digest that it belongs to.

import type { Db } from "./migration-tables.ts";

export async function positions(db: Db): Promise<void> {
  // What stands in applied_seq was told by hello or inferred from a snapshot; without digest and time it is not shown. Agents say hello when central is back.
  for (const column of ["epoch", "chain", "oldest_unfinished", "position_at"])
    await db.schema.alterTable("instances").addColumn(column, "text").execute();
}
