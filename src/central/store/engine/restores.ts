// What the store remembers of having become another one: another epoch, so that agents take its state anew, and from when on it knows nothing.

import { randomBytes } from "node:crypto";
import type { Json } from "../../../core/journal/canonical-json.ts";
import type { Queries, Store, Tx } from "./database.ts";
import { storeEpoch } from "./database.ts";
import {
  furtherLossFacts,
  furtherLossText,
  lossFacts,
  lossText,
  placedLoss,
  type FurtherLoss,
  type PlacedLoss,
  type StoreLoss,
} from "./store-evidence.ts";

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
  /** What is known of what was lost, in words; null where only the times are. */
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
  await audit(tx, at, { action: "store lost commits", epoch, change: lossFacts(loss) });
  return epoch;
}

/**
 * Gives a store its new epoch that was restored from a backup with a central's state directory of the same moment, and returns the epoch. `backedUpMs`: what was acknowledged until
 * then is there. `at`: now, ISO 8601.
 */
export async function noteRestored(tx: Tx, backedUpMs: number, at: string): Promise<string> {
  const since = new Date(backedUpMs).toISOString();
  const epoch = await raiseEpoch(tx, {
    when_backed_up: since,
    when_restored: at,
    clear_now: false,
    cause: "backup",
    detail: null,
  });
  await audit(tx, at, { action: "store restored", epoch, change: { since } });
  return epoch;
}

/**
 * Adds what a central had acknowledged to a loss that another one has noted, once for each run. Nothing where the last epoch that ended is not the one that it
 * knew, or did not end in a failover.
 * Returns what was added.
 */
export async function noteFurtherLoss(
  tx: Tx,
  before: { readonly run: string; readonly epoch: string },
  loss: FurtherLoss,
  at: string,
): Promise<PlacedLoss | undefined> {
  const row = await tx
    .selectFrom("restores")
    .select(["id", "detail", "when_backed_up", "when_restored", "epoch_before", "cause"])
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  if (row?.cause !== "failover" || row.epoch_before !== before.epoch) return undefined;
  const placed = placedLoss(loss, await endsBefore(tx, loss, row.when_restored));
  const since = new Date(loss.sinceMs).toISOString();
  await tx
    .updateTable("restores")
    .set({
      detail: [row.detail, furtherLossText(placed)].filter((text) => text !== null).join(". "),
      when_backed_up: since < row.when_backed_up ? since : row.when_backed_up,
    })
    .where("id", "=", row.id)
    .execute();
  // They are accounted for: whoever reads the same file again finds them.
  const marks = loss.numbers.map((no) => ({ run: before.run, no, at }));
  await tx
    .insertInto("commit_marks")
    .values(marks)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const epoch = await storeEpoch(tx);
  await audit(tx, at, { action: "store lost commits", epoch, change: furtherLossFacts(placed) });
  return placed;
}

/** Returns where the journals of a loss ended when a failover was found: nobody had used the store since. */
async function endsBefore(
  tx: Tx,
  { journals }: FurtherLoss,
  at: string,
): Promise<ReadonlyMap<number, number>> {
  const ends = new Map<number, number>();
  for (const { siteId } of journals) {
    const last = await tx
      .selectFrom("journal")
      .select("seq")
      .where("deployment_site_id", "=", siteId)
      .where("at", "<", at)
      .orderBy("seq", "desc")
      .limit(1)
      .executeTakeFirst();
    if (last !== undefined) ends.set(siteId, last.seq);
  }
  return ends;
}

type AuditLine = {
  readonly action: string;
  readonly epoch: string;
  readonly change: { readonly [name: string]: Json };
};

async function audit(tx: Tx, at: string, { action, epoch, change }: AuditLine): Promise<void> {
  await tx
    .insertInto("audit")
    .values({
      at,
      via: "central",
      who: "central",
      user_id: null,
      customer_id: null,
      action,
      ids: JSON.stringify({ epoch }),
      change: JSON.stringify(change),
      address: null,
      request_id: null,
    })
    .execute();
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
