// Keys of objects that no row of `blobs` or `packages` has. A key is noted as `writing` before its object is, and taken from here in the transaction that gives
// it to a row; so a crash in between leaves a note of what may lie in the bucket. What a row gives up comes here as `removing` in the transaction in which the row
// goes. Nothing but what stands here as `removing` is ever removed from the bucket, and whoever finds his key gone may not commit.

import type { Queries } from "../engine/database.ts";

/** Notes that these are about to be written. */
export async function beginObjects(
  db: Queries,
  keys: readonly string[],
  since: string,
): Promise<void> {
  await db
    .insertInto("loose_objects")
    .values(keys.map((key) => ({ key, state: "writing", since })))
    .execute();
}

/** Returns those that may be given to rows in this transaction. */
export async function takeObjects(
  tx: Queries,
  keys: readonly string[],
): Promise<ReadonlySet<string>> {
  const taken = await tx
    .deleteFrom("loose_objects")
    .where("key", "in", keys)
    .where("state", "=", "writing")
    .returning("key")
    .execute();
  return new Set(taken.map(({ key }) => key));
}

/** No row has these any more, or ever will. */
export async function dropObjects(
  tx: Queries,
  keys: readonly string[],
  since: string,
): Promise<void> {
  if (keys.length === 0) return;
  await tx
    .insertInto("loose_objects")
    .values(keys.map((key) => ({ key, state: "removing", since })))
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ state: "removing", since }))
    .execute();
}

/** Uploads that began before have been given up: their keys may not be given to rows any more. Returns how many. */
export async function expireObjects(db: Queries, before: string, now: string): Promise<number> {
  const expired = await db
    .updateTable("loose_objects")
    .set({ state: "removing", since: now })
    .where("state", "=", "writing")
    .where("since", "<", before)
    .returning("key")
    .execute();
  return expired.length;
}

/** Returns keys to be removed, in their order behind `after`. */
export async function dueObjects(
  db: Queries,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  const due = await db
    .selectFrom("loose_objects")
    .select("key")
    .where("state", "=", "removing")
    .where("key", ">", after)
    .orderBy("key")
    .limit(limit)
    .execute();
  return due.map(({ key }) => key);
}

/** The objects are gone from the bucket. */
export async function forgetObjects(db: Queries, keys: readonly string[]): Promise<void> {
  await db
    .deleteFrom("loose_objects")
    .where("key", "in", keys)
    .where("state", "=", "removing")
    .execute();
}
