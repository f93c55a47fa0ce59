// What the store remembers of having become another one: another epoch, so that agents take its state anew, and from when on it knows nothing.

import { randomBytes } from "node:crypto";
import type { Queries, Store, Tx } from "./database.ts";
import { storeEpoch } from "./database.ts";
import { lossFacts, lossText, type StoreLoss } from "./store-evidence.ts";

/** `failover`: another server took over that lacked what had been acknowledged. */
export type RestoreCause = "backup" | "failover";

export type Restore = {
  readonly when_backed_up: string;
  readonly when_restored: string;
  /** Agents are to drop what they have cached at once, not one domain after the other. */
  readonly clear_now: boolean;
};

export type NotedRestore = Restore & {
  readonly cause: RestoreCause;
  /** What is known of what was lost, in words; null for a backup. */
  readonly detail: string | null;
};

/** Gives a store that was restored from a backup its new epoch, and returns that. */
export async function noteRestore(store: Store, restore: Restore): Promise<string> {
  return store
    .transaction()
    .execute(async (tx) => raiseEpoch(tx, { ...restore, cause: "backup", detail: null }));
}

/**
 * The store's new epoch. Tokens of agents were given by the store before: they ask for new ones. Codes for hosts that join are revoked: what was used or
 * revoked since is not known, and a code for one host must not let in a second.
 */
export async function raiseEpoch(tx: Tx, restore: NotedRestore): Promise<string> {
  const epoch = randomBytes(16).toString("hex");
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
  return epoch;
}

/** Gives a store that lost what had been acknowledged its new epoch, with a line in the audit trail, and returns the epoch. `at`: now, ISO 8601. */
export async function noteFailover(tx: Tx, loss: StoreLoss, at: string): Promise<string> {
  const epoch = await raiseEpoch(tx, {
    when_backed_up: new Date(loss.sinceMs).toISOString(),
    when_restored: at,
    clear_now: false,
    cause: "failover",
    detail: lossText(loss),
  });
  await tx
    .insertInto("audit")
    .values({
      at,
      via: "central",
      who: "central",
      user_id: null,
      customer_id: null,
      action: "store lost commits",
      ids: JSON.stringify({ epoch }),
      change: JSON.stringify(lossFacts(loss)),
      address: null,
      request_id: null,
    })
    .execute();
  return epoch;
}

/** Returns the epochs that the store had before it became another one. */
export async function formerEpochs(db: Queries): Promise<readonly string[]> {
  const rows = await db.selectFrom("restores").select("epoch_before").orderBy("id").execute();
  return rows.map(({ epoch_before: epoch }) => epoch);
}

/** Undefined for a store that never was. */
export async function lastRestore(db: Queries): Promise<NotedRestore | undefined> {
  const row = await db
    .selectFrom("restores")
    .select(["when_backed_up", "when_restored", "clear_now", "cause", "detail"])
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? undefined : { ...row, clear_now: row.clear_now === 1 };
}
