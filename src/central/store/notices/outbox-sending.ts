// The outbox from its senders' side: what is due is taken by one of them at a time, and what came of it is written down.

import type { ExpressionBuilder } from "kysely";
import type { Sealer } from "../../../base/seal.ts";
import type { Busy, OutgoingChannel, TakenMessage } from "../../../core/outgoing.ts";
import type { Store } from "../engine/database.ts";
import { openMessage } from "./outbox.ts";
import type { StoreTables } from "../engine/schema.ts";

const nothing: Busy = { customers: [], messages: [] };

/** One message that is due and whose peer is not busy, for `lease.ms` nobody else's. Undefined when there is none. */
export async function takeMessage(
  { store, sealer }: { readonly store: Store; readonly sealer: Sealer },
  channel: OutgoingChannel,
  lease: { readonly owner: string; readonly ms: number },
  now: Date,
  busy: Busy = nothing,
): Promise<TakenMessage | undefined> {
  const at = now.toISOString();
  const leased = {
    lease_owner: lease.owner,
    lease_until: new Date(now.getTime() + lease.ms).toISOString(),
  };
  const passed = busy.messages.map(({ recipient }) => recipient);
  for (;;) {
    const next = await nextDue(store, channel, at, busy.customers, passed);
    if (next === undefined) return undefined;
    if (isPeerBusy(next.customer_id, openMessage(sealer, next.uid, next.sealed), busy)) {
      passed.push(next.recipient);
      continue;
    }
    const row = await store
      .updateTable("outbox")
      .set((set) => ({ ...leased, attempts: set("attempts", "+", 1) }))
      .where("id", "=", next.id)
      // Once more: another instance may have taken it meanwhile, and then the next one is looked for.
      .where((free) => isFree(free, at))
      .returning(["id", "uid", "customer_id", "kind", "recipient", "attempts"])
      .returning(["when_created", "sealed"])
      .executeTakeFirst();
    if (row === undefined) continue;
    const { id, uid, customer_id, kind, recipient, attempts, when_created, sealed } = row;
    const message = openMessage(sealer, uid, sealed);
    const facts = { id, uid, customerId: customer_id, kind, recipient, attempts };
    return { ...facts, whenCreated: when_created, message };
  }
}

async function nextDue(
  store: Store,
  channel: OutgoingChannel,
  at: string,
  exceptCustomers: readonly number[],
  exceptRecipients: readonly string[],
) {
  let due = store
    .selectFrom("outbox")
    .select(["id", "uid", "customer_id", "recipient", "sealed"])
    .where("channel", "=", channel)
    .where("expires_at", ">", at)
    .where("due_at", "<=", at)
    .where((free) => isFree(free, at))
    .orderBy("due_at")
    .orderBy("id")
    .limit(1);
  if (exceptCustomers.length > 0) due = due.where("customer_id", "not in", exceptCustomers);
  if (exceptRecipients.length > 0) due = due.where("recipient", "not in", exceptRecipients);
  return due.executeTakeFirst();
}

/** Two channels of a customer may be one hook. */
function isPeerBusy(customerId: number, message: TakenMessage["message"], busy: Busy): boolean {
  return (
    message.channel === "chat" &&
    busy.messages.some(
      (other) =>
        other.customerId === customerId &&
        other.message.channel === "chat" &&
        other.message.hookUrl === message.hookUrl,
    )
  );
}

/** Waiting, and nobody has it at that time. */
function isFree(row: ExpressionBuilder<StoreTables, "outbox">, at: string) {
  return row.and([
    row("state", "=", "waiting"),
    row.or([row("lease_until", "is", null), row("lease_until", "<=", at)]),
  ]);
}

/** Its content is let go. */
export async function endMessage(
  store: Store,
  taken: { readonly id: number; readonly owner: string },
  end: { readonly state: "sent" | "failed"; readonly error: string | null },
  now: Date,
): Promise<void> {
  await store
    .updateTable("outbox")
    .set({
      ...end,
      sealed: "",
      when_ended: now.toISOString(),
      lease_owner: null,
      lease_until: null,
    })
    .where("id", "=", taken.id)
    .where("lease_owner", "=", taken.owner)
    .execute();
}

/** The attempt failed for no fault of the message: it keeps its place. */
export async function putBackMessage(
  store: Store,
  taken: { readonly id: number; readonly owner: string },
  error: string,
): Promise<void> {
  await store
    .updateTable("outbox")
    .set({ error, lease_owner: null, lease_until: null })
    .where("id", "=", taken.id)
    .where("lease_owner", "=", taken.owner)
    .execute();
}

/** The attempt failed; what else waits for the recipient waits as long. */
export async function postponeMessage(
  store: Store,
  taken: { readonly id: number; readonly owner: string; readonly recipient: string },
  until: Date,
  error: string,
): Promise<void> {
  const due = until.toISOString();
  await store.transaction().execute(async (tx) => {
    await tx
      .updateTable("outbox")
      .set({ due_at: due, error, lease_owner: null, lease_until: null })
      .where("id", "=", taken.id)
      .where("lease_owner", "=", taken.owner)
      .execute();
    await tx
      .updateTable("outbox")
      .set({ due_at: due })
      .where("recipient", "=", taken.recipient)
      .where("state", "=", "waiting")
      .where("due_at", "<", due)
      .execute();
  });
}

/** Leases of a process that is gone. Only where no other instance can be alive. */
export async function releaseLeases(store: Store): Promise<void> {
  await store
    .updateTable("outbox")
    .set({ lease_owner: null, lease_until: null })
    .where("lease_owner", "is not", null)
    .execute();
}

/** What came too late to be sent, as failed: how many of each channel. */
export async function expireMessages(
  store: Store,
  now: Date,
): Promise<readonly { readonly channel: OutgoingChannel; readonly kind: string }[]> {
  const at = now.toISOString();
  return store
    .updateTable("outbox")
    .set({
      state: "failed",
      error: "it could not be sent in time",
      sealed: "",
      when_ended: at,
      lease_owner: null,
      lease_until: null,
    })
    .where("state", "=", "waiting")
    .where("expires_at", "<=", at)
    .where((or) => or.or([or("lease_until", "is", null), or("lease_until", "<=", at)]))
    .returning(["channel", "kind"])
    .execute();
}

export type Backlog = {
  readonly channel: OutgoingChannel;
  readonly waiting: number;
  /** ISO 8601, of the message that has waited longest. */
  readonly oldest: string;
};

export async function outboxBacklog(store: Store): Promise<readonly Backlog[]> {
  return store
    .selectFrom("outbox")
    .select((select) => [
      "channel",
      select.fn.countAll<number>().as("waiting"),
      select.fn.min("when_created").as("oldest"),
    ])
    .where("state", "=", "waiting")
    .groupBy("channel")
    .execute();
}
