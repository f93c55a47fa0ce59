// What domains order, brought to what their devlove in force says. Nobody has to tell of an activation, a new sub-domain
// or a version that a fleet went back to: what differs is found.

import { noneInRow, type OrderPhase } from "../../../core/acme/order-step.ts";
import { parseSha256, type Sha256 } from "../../../core/ids.ts";
import {
  gatheredUntilMs,
  wantedCertificates,
  type AcmeSaid,
  type WantedCertificate,
} from "../../../core/acme/wanted-names.ts";
import { sql } from "kysely";
import type { Queries } from "../engine/database.ts";
import type { PageRange, Work } from "../engine/work.ts";
import { endChallenges } from "./acme-challenges.ts";

/** A domain whose manifest in force was not looked at yet. */
export type UnreadDomain = {
  readonly domainId: number;
  readonly domain: string;
  readonly manifest: Sha256;
};

/** Returns those with ids behind `after`, in their order. */
export async function unreadDomains(
  db: Queries,
  { after, limit }: PageRange,
): Promise<readonly UnreadDomain[]> {
  const rows = await db
    .selectFrom("domains")
    .innerJoin("viewsets", "viewsets.id", "domains.active_viewset_id")
    .leftJoin("acme_domains", "acme_domains.domain_id", "domains.id")
    .select(["domains.id as domainId", "domains.name as domain"])
    .select("viewsets.manifest_blob as manifest")
    .where(sql<boolean>`acme_domains.manifest_blob IS DISTINCT FROM viewsets.manifest_blob`)
    .where("viewsets.manifest_blob", "is not", null)
    .where("domains.id", ">", after)
    .orderBy("domains.id")
    .limit(limit)
    .execute();
  return rows.flatMap(({ manifest, ...row }) => {
    const sha256 = manifest === null ? undefined : parseSha256(manifest);
    return sha256 === undefined ? [] : [{ ...row, manifest: sha256 }];
  });
}

/** Notes what the devlove of a manifest says. */
export async function noteAcmeSaid(
  { tx }: Work,
  { domainId, manifest }: Pick<UnreadDomain, "domainId" | "manifest">,
  acme: AcmeSaid | undefined,
): Promise<void> {
  const row = { manifest_blob: manifest, said: acme === undefined ? null : JSON.stringify(acme) };
  await tx
    .insertInto("acme_domains")
    .values({ domain_id: domainId, ...row })
    .onConflict((conflict) => conflict.column("domain_id").doUpdateSet(row))
    .execute();
}

/** What was changed, for the log. */
export type OrdersSynced = {
  readonly domain: string;
  readonly change: "wanted" | "names" | "dropped";
  readonly names: readonly string[];
};

/** Whether any order is not as its domain wants it. */
export async function differOrders(db: Queries): Promise<boolean> {
  return (await differences(db)).length > 0;
}

/** Brings the orders to what the domains want: new ones are due at once, those that nobody wants any more are gone. */
export async function syncAcmeOrders(work: Work): Promise<readonly OrdersSynced[]> {
  const synced: OrdersSynced[] = [];
  for (const one of await differences(work.tx)) {
    const { change } = one;
    const { domain, names } = change === "dropped" ? one.stored : one.wanted;
    synced.push({ domain, change, names });
    if (change === "wanted") await want(work, one.wanted);
    else if (change === "names") await changeNames(work, one.stored, names);
    else await drop(work, one.stored);
  }
  return synced;
}

type Placed = WantedCertificate & { readonly domainId: number; readonly domain: string };

type Difference =
  | { readonly change: "wanted"; readonly wanted: Placed }
  | { readonly change: "names"; readonly wanted: Placed; readonly stored: Stored }
  | { readonly change: "dropped"; readonly stored: Stored };

async function differences(db: Queries): Promise<readonly Difference[]> {
  const stored = await storedOrders(db);
  const wanted = await wantedBy(db, stored);
  const left = new Map(stored.map((one) => [keyOf(one), one] as const));
  const found: Difference[] = [];
  for (const one of wanted) {
    const had = left.get(keyOf(one));
    left.delete(keyOf(one));
    if (had === undefined) found.push({ change: "wanted", wanted: one });
    else if (JSON.stringify(had.names) !== JSON.stringify(one.names))
      found.push({ change: "names", wanted: one, stored: had });
  }
  const dropped = [...left.values()].map((one) => ({ change: "dropped", stored: one }) as const);
  return [...found, ...dropped];
}

const keyOf = ({ domainId, directory, email, part }: Placed): string =>
  JSON.stringify([domainId, directory, email, part]);

async function wantedBy(db: Queries, stored: readonly Stored[]): Promise<readonly Placed[]> {
  const rows = await db
    .selectFrom("acme_domains")
    .innerJoin("domains", "domains.id", "acme_domains.domain_id")
    .select(["domains.id as domainId", "domains.name as domain", "said"])
    .where("said", "is not", null)
    .where("domains.active_viewset_id", "is not", null)
    .orderBy("domains.id")
    .execute();
  if (rows.length === 0) return [];
  const subs = await db
    .selectFrom("sub_domains")
    .innerJoin("acme_domains", "acme_domains.domain_id", "sub_domains.domain_id")
    .select(["sub_domains.domain_id as domainId", "sub_domains.name"])
    .where("said", "is not", null)
    .execute();
  const subsOf = Map.groupBy(subs, ({ domainId }) => domainId);
  const hadOf = Map.groupBy(stored, ({ domainId }) => domainId);
  return rows.flatMap(({ domainId, domain, said }) => {
    const names = (subsOf.get(domainId) ?? []).map(({ name }) => name);
    const acme = JSON.parse(said ?? "") as AcmeSaid; // Written by noteAcmeSaid.
    const certificates = wantedCertificates(acme, domain, names, hadOf.get(domainId) ?? []);
    return certificates.map((one) => ({ ...one, domainId, domain }));
  });
}

type Stored = Placed & {
  readonly id: number;
  readonly phase: OrderPhase;
  readonly issuedNames: readonly string[];
  readonly notAfter: string | null;
  readonly renewAt: string | null;
  readonly windowAskedAt: string | null;
  readonly changedAt: string | null;
};

async function storedOrders(db: Queries): Promise<readonly Stored[]> {
  const rows = await db
    .selectFrom("acme_orders")
    .innerJoin("domains", "domains.id", "acme_orders.domain_id")
    .select(["acme_orders.id", "domain_id as domainId", "domains.name as domain"])
    .select(["directory", "email", "part", "names", "issued_names as issuedNames", "phase"])
    .select(["not_after as notAfter", "renew_at as renewAt", "changed_at as changedAt"])
    .select("window_asked_at as windowAskedAt")
    .orderBy("acme_orders.id")
    .execute();
  return rows.map(({ names, issuedNames, ...row }) => ({
    ...row,
    names: parseNames(names),
    issuedNames: issuedNames === null ? [] : parseNames(issuedNames),
  }));
}

/** Written by this folder alone. */
const parseNames = (json: string): readonly string[] => JSON.parse(json) as string[];

async function want(
  { tx, at }: Work,
  { domainId, directory, email, part, names }: Placed,
): Promise<void> {
  await tx
    .insertInto("acme_orders")
    .values({
      domain_id: domainId,
      directory,
      email,
      part,
      names: JSON.stringify(names),
      ...begunAnew(at),
      changed_at: null,
      issued_key_sealed: "",
    })
    .execute();
}

/** A certificate that names more than is wanted is good until it is renewed. */
async function changeNames(work: Work, stored: Stored, names: readonly string[]): Promise<void> {
  const { at } = work;
  const isCovered = names.every((name) => stored.issuedNames.includes(name));
  const change = isCovered ? coveredAgain(stored) : changedNow(stored, at);
  await work.tx
    .updateTable("acme_orders")
    .set({ names: JSON.stringify(names), ...change })
    .where("id", "=", stored.id)
    .execute();
  if (!isCovered) await endChallenges(work, stored);
}

/** Names that waited to be ordered are wanted no more: the certificate is due as before. */
function coveredAgain({ changedAt, phase, renewAt, windowAskedAt }: Stored) {
  if (changedAt === null || phase !== "resting" || renewAt === null) return {};
  const isAskedBefore = windowAskedAt !== null && windowAskedAt < renewAt;
  return { changed_at: null, due_at: isAskedBefore ? windowAskedAt : renewAt };
}

/** Where a certificate is in force, more names are waited for. */
function changedNow({ notAfter, changedAt }: Stored, at: string) {
  if (notAfter === null || notAfter <= at) return { ...begunAnew(at), changed_at: null };
  const since = changedAt ?? at;
  const dueMs = gatheredUntilMs(Date.parse(since), Date.parse(at));
  return { ...begunAnew(new Date(dueMs).toISOString()), changed_at: since };
}

const begunAnew = (dueAt: string) =>
  ({
    phase: "resting",
    due_at: dueAt,
    attempts: 0,
    in_row: JSON.stringify(noneInRow),
    error: null,
    left_out: "{}",
    ordered: "[]",
    key_sealed: "",
    order_url: null,
    order_expires: null,
    challenges: "[]",
    published_at: null,
  }) as const;

/** What was issued stays where it is served, as if it had been uploaded. */
async function drop(work: Work, order: Stored): Promise<void> {
  await endChallenges(work, order);
  await work.tx
    .updateTable("certificates")
    .set({ acme_order_id: null })
    .where("acme_order_id", "=", order.id)
    .execute();
  await work.tx.deleteFrom("acme_orders").where("id", "=", order.id).execute();
}
