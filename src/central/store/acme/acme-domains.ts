// What domains order, brought to what their devlove in force says. Nobody has to tell of an activation, a new sub-domain
// or a version that a fleet went back to: what differs is found.

import { noneInRow } from "../../../core/acme/order-step.ts";
import { parseSha256, type Sha256 } from "../../../core/ids.ts";
import {
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

/** Brings the orders to what the domains want: new ones are due at once, those that nobody wants any more are gone. */
export async function syncAcmeOrders(work: Work): Promise<readonly OrdersSynced[]> {
  const synced: OrdersSynced[] = [];
  const wanted = await wantedByDomain(work.tx);
  const had = Map.groupBy(await storedOrders(work.tx), ({ domainId }) => domainId);
  for (const domainId of new Set([...wanted.keys(), ...had.keys()])) {
    const { domain, certificates } = wanted.get(domainId) ?? { domain: "", certificates: [] };
    const left = new Map((had.get(domainId) ?? []).map((one) => [keyOf(one), one] as const));
    for (const one of certificates) {
      const stored = left.get(keyOf(one));
      left.delete(keyOf(one));
      const change = await want(work, { domainId, domain }, one, stored);
      if (change !== "same") synced.push({ domain, change, names: one.names });
    }
    for (const one of left.values()) {
      await drop(work, one);
      synced.push({ domain: one.domain, change: "dropped", names: parseNames(one.names) });
    }
  }
  return synced;
}

const keyOf = ({
  directory,
  email,
  part,
}: Pick<WantedCertificate, "directory" | "email" | "part">): string =>
  JSON.stringify([directory, email, part]);

type Wanted = { readonly domain: string; readonly certificates: readonly WantedCertificate[] };

async function wantedByDomain(db: Queries): Promise<ReadonlyMap<number, Wanted>> {
  const rows = await db
    .selectFrom("acme_domains")
    .innerJoin("domains", "domains.id", "acme_domains.domain_id")
    .select(["domains.id as domainId", "domains.name as domain", "said"])
    .where("said", "is not", null)
    .where("domains.active_viewset_id", "is not", null)
    .orderBy("domains.id")
    .execute();
  if (rows.length === 0) return new Map();
  const subs = await db
    .selectFrom("sub_domains")
    .innerJoin("acme_domains", "acme_domains.domain_id", "sub_domains.domain_id")
    .select(["sub_domains.domain_id as domainId", "sub_domains.name"])
    .where("said", "is not", null)
    .execute();
  const subsOf = Map.groupBy(subs, ({ domainId }) => domainId);
  return new Map(
    rows.map(({ domainId, domain, said }) => {
      const names = (subsOf.get(domainId) ?? []).map(({ name }) => name);
      // Written by noteAcmeSaid.
      const certificates = wantedCertificates(JSON.parse(said ?? "") as AcmeSaid, domain, names);
      return [domainId, { domain, certificates }] as const;
    }),
  );
}

type Stored = {
  readonly id: number;
  readonly domainId: number;
  readonly domain: string;
  readonly directory: string;
  readonly email: string;
  readonly part: number;
  readonly names: string;
  readonly issuedNames: string | null;
};

async function storedOrders(db: Queries): Promise<readonly Stored[]> {
  return db
    .selectFrom("acme_orders")
    .innerJoin("domains", "domains.id", "acme_orders.domain_id")
    .select(["acme_orders.id", "domain_id as domainId", "domains.name as domain"])
    .select(["directory", "email", "part", "names", "issued_names as issuedNames"])
    .orderBy("acme_orders.id")
    .execute();
}

/** Written by this file alone. */
const parseNames = (json: string): readonly string[] => JSON.parse(json) as string[];

async function want(
  work: Work,
  place: { readonly domainId: number; readonly domain: string },
  { directory, email, part, names }: WantedCertificate,
  stored: Stored | undefined,
): Promise<"same" | "wanted" | "names"> {
  const json = JSON.stringify(names);
  if (stored === undefined) {
    await work.tx
      .insertInto("acme_orders")
      .values({
        domain_id: place.domainId,
        directory,
        email,
        part,
        names: json,
        ...begunAnew(work.at),
        issued_key_sealed: "",
      })
      .execute();
    return "wanted";
  }
  if (stored.names === json) return "same";
  const issued = stored.issuedNames === null ? [] : parseNames(stored.issuedNames);
  // A certificate that names more than is wanted is good until it is renewed.
  const isCovered = names.every((name) => issued.includes(name));
  await work.tx
    .updateTable("acme_orders")
    .set({ names: json, ...(!isCovered && begunAnew(work.at)) })
    .where("id", "=", stored.id)
    .execute();
  if (!isCovered) await endChallenges(work, stored);
  return "names";
}

const begunAnew = (at: string) =>
  ({
    phase: "resting",
    due_at: at,
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
