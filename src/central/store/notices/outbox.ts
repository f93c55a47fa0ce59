// The outbox: a message is written in the transaction of what causes it, taken by one sender at a time (outbox-sending.ts), and kept as sent or failed for a while.
//
//   waiting ──taken (lease)──▶ sent | failed;  a lease that ran out, or an attempt that failed, is waiting again
//
// Limits put a message off and drop it only where its turn would come after its lifetime. `due_at` of all that a customer has for a recipient is what they
// count by: when each went out, was tried last, or is to go.

import type { SelectQueryBuilder } from "kysely";
import type { Sealer } from "../../../base/seal.ts";
import type { Outgoing } from "../../../core/outgoing.ts";
import type { Store } from "../engine/database.ts";
import type { StoreTables } from "../engine/schema.ts";
import type { Work } from "../engine/work.ts";

export type NewMessage = {
  readonly customerId: number;
  readonly kind: string;
  /** An address, or `chat:<id>`. */
  readonly recipient: string;
  readonly message: Outgoing;
  readonly lifetimeMs: number;
  /** The time that it may wait for its turn if too many were before it; undefined is as long as it lives. */
  readonly patienceMs?: number;
  /** A second message with this key is not written. */
  readonly onceKey?: string;
};

/** Nobody takes another's turn: each customer has its own. */
export type OutboxLimits = {
  /** Messages of the customer to the recipient in an hour. */
  readonly perRecipient: number;
  /** Messages of the customer in a day; undefined: as many as there are. */
  readonly perCustomer: number | undefined;
  /** Messages of all customers to the recipient in an hour; undefined: as many as there are. */
  readonly perMailbox?: number;
};

/** `limited`: its turn would come too late; it is not written. */
export type Enqueued = "queued" | "deferred" | "already" | "limited";

const hourMs = 3_600_000;
const dayMs = 86_400_000;

export async function enqueue(
  work: Work,
  given: NewMessage,
  limits: OutboxLimits,
): Promise<Enqueued> {
  const { tx, at, sealer, randomHex } = work;
  const { customerId, kind, recipient, message, lifetimeMs, patienceMs = lifetimeMs } = given;
  if (given.onceKey !== undefined) {
    const same = await tx
      .selectFrom("outbox")
      .select("id")
      .where("once_key", "=", given.onceKey)
      .executeTakeFirst();
    if (same !== undefined) return "already";
  }
  const due = await turnOf(work, given, limits);
  const [expires, latest] = [later(at, lifetimeMs), later(at, patienceMs)];
  if (due !== at && (due >= expires || due > latest)) return "limited";
  const uid = randomHex(16);
  await tx
    .insertInto("outbox")
    .values({
      uid,
      once_key: given.onceKey ?? null,
      customer_id: customerId,
      channel: message.channel,
      kind,
      recipient,
      sealed: sealer.seal(JSON.stringify(message), messageContext(uid)),
      state: "waiting",
      attempts: 0,
      due_at: due,
      expires_at: expires,
      lease_owner: null,
      lease_until: null,
      when_created: at,
      when_ended: null,
      error: null,
    })
    .execute();
  return due === at ? "queued" : "deferred";
}

function later(at: string, ms: number): string {
  return new Date(Date.parse(at) + ms).toISOString();
}

/**
 * Returns when the message may go out. Links to new tokens are counted apart, so that no flood of reports
 * keeps them away.
 */
async function turnOf(
  { tx, at }: Work,
  { customerId, kind, recipient }: NewMessage,
  { perRecipient, perCustomer, perMailbox }: OutboxLimits,
): Promise<string> {
  const all = tx.selectFrom("outbox").select("due_at");
  const to = all
    .where("recipient", "=", recipient)
    .where("kind", kind === "recovery" ? "=" : "!=", "recovery");
  const turns = [
    await turnAmong(to.where("customer_id", "=", customerId), perRecipient, hourMs, at),
    await turnAmong(all.where("customer_id", "=", customerId), perCustomer, dayMs, at),
    await turnAmong(to, perMailbox, hourMs, at),
  ];
  return turns.toSorted().at(-1) ?? at;
}

/**
 * Returns when fewer than `count` of the messages lie within `spanMs` before: now, or once the one that is so
 * many from the end is past.
 */
async function turnAmong(
  messages: SelectQueryBuilder<StoreTables, "outbox", { due_at: string }>,
  count: number | undefined,
  spanMs: number,
  at: string,
): Promise<string> {
  if (count === undefined) return at;
  const before = await messages
    .where("due_at", ">", later(at, -spanMs))
    .orderBy("due_at", "desc")
    .limit(1)
    .offset(count - 1)
    .executeTakeFirst();
  return before === undefined ? at : later(before.due_at, spanMs);
}

/** Drops what waits for a channel that is gone. */
export async function dropWaiting({ tx }: Work, recipient: string): Promise<void> {
  await tx
    .deleteFrom("outbox")
    .where("recipient", "=", recipient)
    .where("state", "=", "waiting")
    .execute();
}

/** The channel's hook leads elsewhere now, and so does what waits for it. */
export async function redirectWaiting(
  { tx, sealer }: Work,
  recipient: string,
  hookUrl: string,
): Promise<void> {
  const rows = await tx
    .selectFrom("outbox")
    .select(["id", "uid", "sealed"])
    .where("recipient", "=", recipient)
    .where("state", "=", "waiting")
    .execute();
  for (const { id, uid, sealed } of rows) {
    const message = openMessage(sealer, uid, sealed);
    if (message.channel !== "chat" || message.hookUrl === hookUrl) continue;
    const changed: Outgoing = { ...message, hookUrl };
    await tx
      .updateTable("outbox")
      .set({ sealed: sealer.seal(JSON.stringify(changed), messageContext(uid)) })
      .where("id", "=", id)
      .execute();
  }
}

export function messageContext(uid: string): string {
  return `outbox/${uid}`;
}

export function openMessage(sealer: Pick<Sealer, "open">, uid: string, sealed: string): Outgoing {
  // Written by `enqueue`.
  return JSON.parse(sealer.open(sealed, messageContext(uid))) as Outgoing;
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
