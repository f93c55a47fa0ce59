// The outbox: a message is written in the transaction of what causes it, taken by one sender at a time, and kept as sent or failed for a while.
//
//   waiting ──taken (lease)──▶ sent | failed;  a lease that ran out, or an attempt that failed, is waiting again

import type { ExpressionBuilder } from "kysely";
import type { Sealer } from "../../base/seal.ts";
import type { Outgoing, OutgoingChannel, TakenMessage } from "../../core/outgoing.ts";
import type { Store } from "./database.ts";
import type { StoreTables } from "./schema.ts";
import type { Work } from "./work.ts";

export type NewMessage = {
  readonly customerId: number;
  readonly kind: string;
  /** An address, or `chat:<id>`. */
  readonly recipient: string;
  readonly message: Outgoing;
  readonly lifetimeMs: number;
  /** A second message with this key is not written. */
  readonly onceKey?: string;
};

export type OutboxLimits = {
  /** Messages of the last hour. */
  readonly perRecipient: number;
  /** Messages of the last day; undefined: as many as there are. */
  readonly perCustomer: number | undefined;
};

export type Enqueued = "queued" | "already" | "limited";

const hourMs = 3_600_000;
const dayMs = 86_400_000;

export async function enqueue(
  work: Work,
  given: NewMessage,
  limits: OutboxLimits,
): Promise<Enqueued> {
  const { tx, at, sealer, randomHex } = work;
  const { customerId, kind, recipient, message, lifetimeMs, onceKey } = given;
  if (onceKey !== undefined) {
    const same = await tx
      .selectFrom("outbox")
      .select("id")
      .where("once_key", "=", onceKey)
      .executeTakeFirst();
    if (same !== undefined) return "already";
  }
  if (await isOver(work, given, limits)) return "limited";
  const uid = randomHex(16);
  await tx
    .insertInto("outbox")
    .values({
      uid,
      once_key: onceKey ?? null,
      customer_id: customerId,
      channel: message.channel,
      kind,
      recipient,
      sealed: sealer.seal(JSON.stringify(message), contextOf(uid)),
      state: "waiting",
      attempts: 0,
      due_at: at,
      expires_at: new Date(Date.parse(at) + lifetimeMs).toISOString(),
      lease_owner: null,
      lease_until: null,
      when_created: at,
      when_ended: null,
      error: null,
    })
    .execute();
  return "queued";
}

async function isOver(
  { tx, at }: Work,
  { customerId, kind, recipient }: NewMessage,
  { perRecipient, perCustomer }: OutboxLimits,
): Promise<boolean> {
  const since = (ms: number): string => new Date(Date.parse(at) - ms).toISOString();
  const ofRecipient = await tx
    .selectFrom("outbox")
    .select((select) => select.fn.countAll<number>().as("count"))
    .where("recipient", "=", recipient)
    .where("kind", kind === "recovery" ? "=" : "!=", "recovery")
    .where("when_created", ">", since(hourMs))
    .executeTakeFirstOrThrow();
  if (ofRecipient.count >= perRecipient) return true;
  if (perCustomer === undefined) return false;
  const ofCustomer = await tx
    .selectFrom("outbox")
    .select((select) => select.fn.countAll<number>().as("count"))
    .where("customer_id", "=", customerId)
    .where("when_created", ">", since(dayMs))
    .executeTakeFirstOrThrow();
  return ofCustomer.count >= perCustomer;
}

/** Of a channel that is gone: what waits for it goes with it. */
export async function dropWaiting({ tx }: Work, recipient: string): Promise<void> {
  await tx
    .deleteFrom("outbox")
    .where("recipient", "=", recipient)
    .where("state", "=", "waiting")
    .execute();
}

function contextOf(uid: string): string {
  return `outbox/${uid}`;
}

/** One message that is due, for `leaseMs` nobody else's. Undefined when there is none. */
export async function takeMessage(
  { store, sealer }: { readonly store: Store; readonly sealer: Sealer },
  channel: OutgoingChannel,
  lease: { readonly owner: string; readonly ms: number },
  now: Date,
): Promise<TakenMessage | undefined> {
  const at = now.toISOString();
  const leased = {
    lease_owner: lease.owner,
    lease_until: new Date(now.getTime() + lease.ms).toISOString(),
  };
  for (;;) {
    const next = await store
      .selectFrom("outbox")
      .select("id")
      .where("channel", "=", channel)
      .where("expires_at", ">", at)
      .where("due_at", "<=", at)
      .where((free) => isFree(free, at))
      .orderBy("due_at")
      .orderBy("id")
      .limit(1)
      .executeTakeFirst();
    if (next === undefined) return undefined;
    const row = await store
      .updateTable("outbox")
      .set((set) => ({ ...leased, attempts: set("attempts", "+", 1) }))
      .where("id", "=", next.id)
      // Once more: another instance may have taken it meanwhile, and then the next one is looked for.
      .where((free) => isFree(free, at))
      .returning(["id", "uid", "kind", "recipient", "attempts", "when_created", "sealed"])
      .executeTakeFirst();
    if (row === undefined) continue;
    const { id, uid, kind, recipient, attempts, when_created: whenCreated, sealed } = row;
    // Written by `enqueue`.
    const message = JSON.parse(sealer.open(sealed, contextOf(uid))) as Outgoing;
    return { id, uid, kind, recipient, attempts, whenCreated, message };
  }
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

/** The attempt failed; what else waits for the recipient waits as long. */
export async function postponeMessage(
  store: Store,
  taken: { readonly id: number; readonly owner: string; readonly recipient: string },
  until: Date,
  error: string | null,
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

/** How many rows were removed. */
export async function dropSentMessages(store: Store, now: Date, keepMs: number): Promise<number> {
  const { numDeletedRows } = await store
    .deleteFrom("outbox")
    .where("state", "!=", "waiting")
    .where("when_ended", "<", new Date(now.getTime() - keepMs).toISOString())
    .executeTakeFirst();
  return Number(numDeletedRows);
}
