// Subscriptions of addresses to kinds of messages. Each has a link of its own by which whoever reads the mails can end it.

import { mailAddressKey } from "../../../core/outgoing.ts";
import {
  atPresent,
  subscribe,
  unsubscribe,
  type SubscribeOutcome,
  type Subscription,
  type UnsubscribeOutcome,
} from "../../../core/subscription.ts";
import type { Work } from "../engine/work.ts";
import type { StoreTables } from "../engine/schema.ts";
import { sha256Of } from "../../../core/ids.ts";

export type SubscriptionChannel = StoreTables["subscriptions"]["channel"];

export type SubscriptionKey = {
  readonly customerId: number;
  readonly channel: SubscriptionChannel;
  readonly type: string;
  readonly email: string;
};

type StoredState = Pick<StoreTables["subscriptions"], "state" | "suspended_until">;

export async function addSubscription(
  work: Work,
  key: SubscriptionKey,
  countMax: number,
): Promise<SubscribeOutcome["status"] | "too-many"> {
  const found = await find(work, key);
  const { status, becomes } = subscribe(stateOf(found), Date.parse(work.at));
  if (found === undefined) {
    if ((await countOf(work, key.customerId)) >= countMax) return "too-many";
    await insert(work, key);
  } else await write(work, found.id, becomes);
  return status;
}

export async function endSubscription(
  work: Work,
  key: SubscriptionKey,
  isPermanent: boolean,
): Promise<UnsubscribeOutcome["status"]> {
  const found = await find(work, key);
  const { status, becomes } = unsubscribe(stateOf(found), isPermanent, Date.parse(work.at));
  if (found !== undefined && becomes !== undefined && status === "unsubscribed")
    await write(work, found.id, becomes);
  return status;
}

function stateOf(row: StoredState | undefined): Subscription | undefined {
  if (row === undefined) return undefined;
  return row.state === "suspended"
    ? { state: "suspended", untilMs: Date.parse(row.suspended_until ?? "") }
    : { state: row.state };
}

async function find({ tx }: Work, { customerId, channel, type, email }: SubscriptionKey) {
  return tx
    .selectFrom("subscriptions")
    .select(["id", "state", "suspended_until", "link_digest", "link_sealed"])
    .where("customer_id", "=", customerId)
    .where("channel", "=", channel)
    .where("type", "=", type)
    .where("email_key", "=", mailAddressKey(email))
    .executeTakeFirst();
}

async function countOf({ tx }: Work, customerId: number): Promise<number> {
  const { count } = await tx
    .selectFrom("subscriptions")
    .select((select) => select.fn.countAll<number>().as("count"))
    .where("customer_id", "=", customerId)
    .executeTakeFirstOrThrow();
  return count;
}

async function insert(
  { tx, at, sealer, randomHex }: Work,
  { customerId, channel, type, email }: SubscriptionKey,
): Promise<Addressee> {
  const token = Buffer.from(randomHex(24), "hex").toString("base64url");
  const link_digest = sha256Of(token);
  await tx
    .insertInto("subscriptions")
    .values({
      customer_id: customerId,
      channel,
      type,
      email,
      email_key: mailAddressKey(email),
      state: "active",
      suspended_until: null,
      link_digest,
      link_sealed: sealer.seal(token, linkContext(link_digest)),
      when_created: at,
      when_updated: at,
    })
    .execute();
  return { email, linkToken: token };
}

async function write({ tx, at }: Work, id: number, becomes: Subscription): Promise<void> {
  const until = becomes.state === "suspended" ? new Date(becomes.untilMs).toISOString() : null;
  await tx
    .updateTable("subscriptions")
    .set({ state: becomes.state, suspended_until: until, when_updated: at })
    .where("id", "=", id)
    .execute();
}

export function linkContext(linkDigest: string): string {
  return `subscription/${linkDigest}`;
}

export type Addressee = { readonly email: string; readonly linkToken: string };

/** Who gets messages of this type at present, in order of subscription. */
export async function addressees(
  { tx, at, sealer }: Work,
  { customerId, channel, type }: Omit<SubscriptionKey, "email">,
): Promise<readonly Addressee[]> {
  const rows = await tx
    .selectFrom("subscriptions")
    .select(["email", "state", "suspended_until", "link_digest", "link_sealed"])
    .where("customer_id", "=", customerId)
    .where("channel", "=", channel)
    .where("type", "=", type)
    .where("state", "!=", "ended")
    .orderBy("id")
    .execute();
  return rows
    .filter((row) => isActive(row, at))
    .map(({ email, link_digest, link_sealed }) => ({
      email,
      linkToken: sealer.open(link_sealed, linkContext(link_digest)),
    }));
}

function isActive(row: StoredState, at: string): boolean {
  const stored = stateOf(row);
  return stored !== undefined && atPresent(stored, Date.parse(at)).state === "active";
}

/** An address that gets reports without having subscribed; undefined where it was taken off. */
export async function reportAddressee(
  work: Work,
  customerId: number,
  type: string,
  email: string,
): Promise<Addressee | undefined> {
  const key = { customerId, channel: "report", type, email } as const;
  const found = await find(work, key);
  if (found === undefined) return insert(work, key);
  if (!isActive(found, work.at)) return undefined;
  return { email, linkToken: work.sealer.open(found.link_sealed, linkContext(found.link_digest)) };
}

export type LinkedSubscription = {
  readonly email: string;
  readonly type: string;
  readonly customerId: number;
  readonly customer: string;
  readonly state: Subscription["state"];
  /** ISO 8601, of a suspension. */
  readonly until: string | null;
};

export type LinkAction = "suspend" | "end" | "resume";

/**
 * Returns the subscription that a link leads to, after the action if there is one, or undefined if the link
 * leads nowhere.
 */
export async function subscriptionOfLink(
  work: Work,
  token: string,
  action: LinkAction | undefined,
): Promise<LinkedSubscription | undefined> {
  const { tx, at } = work;
  const row = await tx
    .selectFrom("subscriptions")
    .innerJoin("customers", "customers.id", "subscriptions.customer_id")
    .select([
      "subscriptions.id",
      "subscriptions.email",
      "subscriptions.type",
      "subscriptions.state",
      "subscriptions.suspended_until",
      "subscriptions.customer_id",
      "customers.name as customer",
    ])
    .where("link_digest", "=", sha256Of(token))
    .executeTakeFirst();
  const stored = stateOf(row);
  if (row === undefined || stored === undefined) return undefined;
  const nowMs = Date.parse(at);
  let present = atPresent(stored, nowMs);
  if (action !== undefined) {
    const becomes =
      action === "resume"
        ? subscribe(stored, nowMs).becomes
        : unsubscribe(stored, action === "end", nowMs).becomes;
    if (becomes !== undefined) {
      await write(work, row.id, becomes);
      present = becomes;
    }
  }
  return {
    email: row.email,
    type: row.type,
    customerId: row.customer_id,
    customer: row.customer,
    state: present.state,
    until: present.state === "suspended" ? new Date(present.untilMs).toISOString() : null,
  };
}
