// What the store remembers of having been restored: another epoch, so that agents take its state anew, and from when on it knows nothing.

import { randomBytes } from "node:crypto";
import type { Queries, Store } from "./database.ts";
import { storeEpoch } from "./database.ts";

export type Restore = {
  readonly when_backed_up: string;
  readonly when_restored: string;
  /** Agents are to drop what they have cached at once, not one domain after the other. */
  readonly clear_now: boolean;
};

/**
 * The store's new epoch. Tokens of agents were given by the store before: they ask for new ones. Codes for hosts that join are revoked: what was used or
 * revoked since the backup is not known, and a code for one host must not let in a second.
 */
export async function noteRestore(store: Store, restore: Restore): Promise<string> {
  const epoch = randomBytes(16).toString("hex");
  await store.transaction().execute(async (tx) => {
    await tx
      .insertInto("restores")
      .values({
        ...restore,
        epoch_before: await storeEpoch(tx),
        clear_now: restore.clear_now ? 1 : 0,
      })
      .execute();
    await tx.updateTable("store").set({ epoch }).where("id", "=", 1).execute();
    await tx.deleteFrom("agent_tokens").execute();
    await tx
      .updateTable("enrolments")
      .set({ when_revoked: restore.when_restored })
      .where("when_revoked", "is", null)
      .execute();
  });
  return epoch;
}

/** Undefined for a store that never was. */
export async function lastRestore(db: Queries): Promise<Restore | undefined> {
  const row = await db
    .selectFrom("restores")
    .select(["when_backed_up", "when_restored", "clear_now"])
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? undefined : { ...row, clear_now: row.clear_now === 1 };
}
