// Changes of orders of certificates. Each is one transaction, and durable before the directory hears what follows from it.

import type { ChallengeAnswer } from "../../../core/acme/challenge-answer.ts";
import {
  nextOrder,
  tryNow,
  type OrderChange,
  type OrderEvent,
  type OrderMoment,
  type TryNow,
} from "../../../core/acme/order-step.ts";
import type { Work } from "../engine/work.ts";
import type { CheckedCertificate } from "../vault/certificates.ts";
import { sitesOfDomain } from "../journal/links.ts";
import { endChallenges, isRoomFor, tellChallenges } from "./acme-challenges.ts";
import { acmeOrder, type AcmeOrder, type PublishedChallenge } from "./acme-order-rows.ts";

export const orderKeyContext = (id: number): string => `acme_orders/${id}/order`;
export const issuedKeyContext = (id: number): string => `acme_orders/${id}/issued`;

const isoOf = (ms: number): string => new Date(ms).toISOString();

/** What a step found out beside its event. */
export type OrderNews = {
  readonly keySealed?: string;
  readonly orderUrl?: string | null;
  readonly expires?: string | null;
  readonly challenges?: readonly PublishedChallenge[];
  readonly publishedAt?: string;
};

/** `overtaken`: the order is another one by now, and what happened to the one before concerns nobody. */
export type OrderTaken = "taken" | "overtaken";

/** An order that waits before its challenges are told. */
export const noChallengeRoom: OrderEvent = {
  kind: "awaited",
  hosts: ["room: the challenges of the domain's other orders are as many as its hosts can have"],
};

/** Takes what happened to an order, as it was when the step began. */
export async function takeOrderEvent(
  work: Work,
  before: AcmeOrder,
  event: OrderEvent,
  news: OrderNews,
  moment: OrderMoment,
): Promise<OrderTaken> {
  const now = await acmeOrder(work.tx, before.id);
  if (now === undefined || !isSameOrder(before, now)) return "overtaken";
  const change = nextOrder(now, event, moment);
  await work.tx
    .updateTable("acme_orders")
    .set({ ...columnsOf(change), ...columnsOfNews(news), ...columnsOfEnd(change) })
    .$if(event.kind === "begun", (query) => query.set({ changed_at: null }))
    .where("id", "=", before.id)
    .execute();
  if (change.isOver) await endChallenges(work, before);
  return "taken";
}

/**
 * Stores the challenges of an order and tells them to the agents, all of them or none: where there is no room for them
 * beside those of the domain's other orders, the order waits. Returns what happened.
 */
export async function openOrder(
  work: Work,
  before: AcmeOrder,
  challenges: readonly PublishedChallenge[],
  moment: OrderMoment,
): Promise<{ readonly event: OrderEvent; readonly taken: OrderTaken }> {
  if (!(await isRoomFor(work, before, challenges.length)))
    return {
      event: noChallengeRoom,
      taken: await takeOrderEvent(work, before, noChallengeRoom, {}, moment),
    };
  const event = { kind: "opened" } as const;
  const news = { challenges, publishedAt: work.at };
  const taken = await takeOrderEvent(work, before, event, news, moment);
  if (taken === "taken" && challenges.length > 0)
    await tellChallenges(work, before, await sitesOfDomain(work, before.domainId));
  return { event, taken };
}

/** Leaves an order that is due alone for so long, as it is. */
export async function pauseOrder({ tx, at }: Work, id: number, forMs: number): Promise<void> {
  await tx
    .updateTable("acme_orders")
    .set({ due_at: isoOf(Date.parse(at) + forMs) })
    .where("id", "=", id)
    .where("due_at", "<=", at)
    .execute();
}

/** Has an order that waits tried now, if it may be. */
export async function tryOrderNow({ tx, at }: Work, id: number): Promise<TryNow | undefined> {
  const order = await acmeOrder(tx, id);
  if (order === undefined) return undefined;
  const verdict = tryNow(order, Date.parse(at));
  if (verdict.kind === "now")
    await tx
      .updateTable("acme_orders")
      .set({ due_at: at })
      .where("id", "=", id)
      .where("due_at", ">", at)
      .execute();
  return verdict;
}

/** Keeps that a challenge is answered, or that the directory has the answer. */
export async function noteAnswer(
  { tx }: Work,
  before: AcmeOrder,
  token: string,
  answer: ChallengeAnswer,
): Promise<OrderTaken> {
  const now = await acmeOrder(tx, before.id);
  if (now === undefined || !isSameOrder(before, now)) return "overtaken";
  const challenges = now.challenges.map((one) => (one.token === token ? { ...one, answer } : one));
  await tx
    .updateTable("acme_orders")
    .set({ challenges: JSON.stringify(challenges) })
    .where("id", "=", before.id)
    .execute();
  return "taken";
}

function isSameOrder(one: AcmeOrder, other: AcmeOrder): boolean {
  return (
    one.phase === other.phase &&
    one.orderUrl === other.orderUrl &&
    JSON.stringify(one.ordered) === JSON.stringify(other.ordered)
  );
}

function columnsOf({
  phase,
  dueMs,
  tryFromMs,
  attempts,
  inRow,
  error,
  ordered,
  leftOut,
}: OrderChange) {
  return {
    phase,
    due_at: isoOf(dueMs),
    try_from: isoOf(tryFromMs),
    attempts,
    in_row: JSON.stringify(inRow),
    error,
    ordered: JSON.stringify(ordered),
    left_out: JSON.stringify(leftOut),
  };
}

function columnsOfNews({ keySealed, orderUrl, expires, challenges, publishedAt }: OrderNews) {
  return {
    ...(keySealed !== undefined && { key_sealed: keySealed }),
    ...(orderUrl !== undefined && { order_url: orderUrl }),
    ...(expires !== undefined && { order_expires: expires }),
    ...(challenges !== undefined && { challenges: JSON.stringify(challenges) }),
    ...(publishedAt !== undefined && { published_at: publishedAt }),
  };
}

/** What belongs to an order of the directory ends with it. */
function columnsOfEnd({ isOver, phase }: OrderChange) {
  if (!isOver) return {};
  const ended = { order_url: null, order_expires: null, challenges: "[]", published_at: null };
  return phase === "resting" ? { ...ended, key_sealed: "" } : ended;
}

/** Seals the private key of an order under way. */
export function sealOrderKey({ sealer }: Pick<Work, "sealer">, id: number, pem: string): string {
  return sealer.seal(pem, orderKeyContext(id));
}

/** Opens the private key of the order under way; undefined if there is none. */
export async function orderKey({ tx, sealer }: Work, id: number): Promise<string | undefined> {
  const row = await tx
    .selectFrom("acme_orders")
    .select("key_sealed")
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined || row.key_sealed === "") return undefined;
  return sealer.open(row.key_sealed, orderKeyContext(id));
}

export type IssuedCertificate = CheckedCertificate & {
  readonly renewMs: number;
  /** When the directory is asked for its window of renewal; null: it has none. */
  readonly windowAskedMs: number | null;
};

/** Keeps a certificate that was issued. Whoever delivers it finds it here, also after a restart. */
export async function takeIssued(
  work: Work,
  before: AcmeOrder,
  issued: IssuedCertificate,
  moment: OrderMoment,
): Promise<OrderTaken> {
  const { renewMs, windowAskedMs } = issued;
  const event: OrderEvent = { kind: "issued", renewMs, windowAskedMs };
  const taken = await takeOrderEvent(work, before, event, {}, moment);
  if (taken === "overtaken") return taken;
  await work.tx
    .updateTable("acme_orders")
    .set({
      issued_names: JSON.stringify(issued.names),
      chain: issued.chain,
      issued_key_sealed: work.sealer.seal(issued.privateKey, issuedKeyContext(before.id)),
      fingerprint: issued.fingerprint,
      not_before: issued.notBefore,
      not_after: issued.notAfter,
      renew_at: isoOf(renewMs),
      window_asked_at: windowAskedMs === null ? null : isoOf(windowAskedMs),
      renewal_window: null,
      when_issued: work.at,
    })
    .where("id", "=", before.id)
    .execute();
  return "taken";
}

export type WindowTold = {
  readonly windowAskedMs: number;
  /** Undefined: nothing new was said. */
  readonly renewal?: { readonly window: string; readonly renewMs: number };
};

/** Takes what the directory says of the renewal of a certificate, unless the order became due for something else meanwhile. */
export async function takeWindow(
  { tx }: Work,
  before: AcmeOrder,
  { windowAskedMs, renewal }: WindowTold,
): Promise<void> {
  const renewMs = renewal?.renewMs ?? before.issued?.renewMs ?? windowAskedMs;
  await tx
    .updateTable("acme_orders")
    .set({
      window_asked_at: isoOf(windowAskedMs),
      due_at: isoOf(Math.min(renewMs, windowAskedMs)),
      ...(renewal !== undefined && {
        renew_at: isoOf(renewal.renewMs),
        renewal_window: renewal.window,
      }),
    })
    .where("id", "=", before.id)
    .where("phase", "=", "resting")
    .where("due_at", "=", isoOf(before.dueMs))
    .execute();
}
