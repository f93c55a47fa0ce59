// The open challenges of a domain in the journals of its sites: told, told again where an instance took a snapshot in
// their place, and ended.

import { sql } from "kysely";
import { challengesMax, type Challenge } from "../../../wire/challenges.ts";
import type { Queries } from "../engine/database.ts";
import { insertListed, listed, rowsAtOnce } from "../engine/listed.ts";
import { pacedParts } from "../engine/parts.ts";
import { append, type Work } from "../engine/work.ts";
import type { Appended } from "../journal/journal.ts";
import { sitesOfDomain } from "../journal/links.ts";
import { readProofs, type InstanceProof } from "../journal/proof.ts";
import type { AcmeOrder, PublishedChallenge } from "./acme-order-rows.ts";

/** Directories forget orders within a week (Let's Encrypt: seven days). */
export const openMs = 7 * 86_400_000;

/** Returns all open challenges of the domain in one order, so that equal states have equal bodies. */
async function openChallenges(
  db: Queries,
  domainId: number,
  exceptOrder?: number,
): Promise<Challenge[]> {
  const rows = await db
    .selectFrom("acme_orders")
    .select(["id", "challenges", "published_at as publishedAt"])
    .where("domain_id", "=", domainId)
    .where("published_at", "is not", null)
    .orderBy("id")
    .execute();
  return rows
    .filter(({ id }) => id !== exceptOrder)
    .flatMap(({ challenges, publishedAt }) => {
      const until = new Date(Date.parse(publishedAt ?? "") + openMs).toISOString();
      // Written by acme-orders.ts.
      return (JSON.parse(challenges) as PublishedChallenge[]).map(
        ({ host, token, keyAuthorization }) => ({
          host,
          token,
          key_authorization: keyAuthorization,
          until,
        }),
      );
    });
}

/** Whether agents can be told of so many more challenges of the domain, beside those of its other orders. */
export async function isRoomFor(
  { tx }: Work,
  { id, domainId }: Pick<AcmeOrder, "id" | "domainId">,
  challenges: number,
): Promise<boolean> {
  return (await openChallenges(tx, domainId, id)).length + challenges <= challengesMax;
}

type Whose = Pick<AcmeOrder, "id" | "domainId" | "domain">;

/** Tells sites of all open challenges of the domain. What stands in the order's row is told. */
export async function tellChallenges(
  work: Work,
  { id, domainId, domain }: Whose,
  siteIds: readonly number[],
): Promise<void> {
  if (siteIds.length === 0) return;
  const body = { domain, challenges: await openChallenges(work.tx, domainId) };
  const entries = await append(work, siteIds, "challenges.changed", body);
  await insertListed(
    work.tx,
    "acme_challenge_sites",
    { order_id: "integer", deployment_site_id: "integer", seq: "bigint" },
    entries.map(({ deploymentSiteId, seq }) => {
      return { order_id: id, deployment_site_id: deploymentSiteId, seq };
    }),
    sql`ON CONFLICT (order_id, deployment_site_id) DO UPDATE SET seq = excluded.seq`,
  );
  await moveProofs(work, domainId, entries);
}

/** The proof of the domain's other orders is at the latest entries too: no receipt comes of those that these replaced. */
async function moveProofs(
  { tx }: Work,
  domainId: number,
  entries: readonly Appended[],
): Promise<void> {
  const rows = entries.map(({ deploymentSiteId: id, seq }) => ({ id, seq }));
  for await (const part of pacedParts(rows, rowsAtOnce(tx)))
    await sql`
      UPDATE acme_challenge_sites SET seq = given.seq
      FROM ${listed(tx, { id: "integer", seq: "bigint" }, part)} AS given
      WHERE acme_challenge_sites.deployment_site_id = given.id
        AND order_id IN (SELECT id FROM acme_orders WHERE domain_id = ${domainId})
    `.execute(tx);
}

/** Ends the challenges of an order, wherever they were told. Those of the domain's other orders stay open. */
export async function endChallenges(work: Work, { id, domainId, domain }: Whose): Promise<void> {
  const { tx } = work;
  const told = await tx
    .selectFrom("acme_challenge_sites")
    .innerJoin("domain_links", (join) =>
      join
        .onRef("domain_links.deployment_site_id", "=", "acme_challenge_sites.deployment_site_id")
        .on("domain_links.domain_id", "=", domainId),
    )
    .select("acme_challenge_sites.deployment_site_id as siteId")
    .where("order_id", "=", id)
    .orderBy("acme_challenge_sites.deployment_site_id")
    .execute();
  await tx.deleteFrom("acme_challenge_sites").where("order_id", "=", id).execute();
  if (told.length === 0) return;
  const siteIds = told.map(({ siteId }) => siteId);
  const body = { domain, challenges: await openChallenges(tx, domainId, id) };
  await moveProofs(work, domainId, await append(work, siteIds, "challenges.changed", body));
}

/** Who is in touch, as it is known outside the store. */
export type ChallengeReach = {
  readonly isLive: (deploymentSiteId: number, instanceId: string) => boolean;
};

/** For so long instances are waited for that are not in touch: since they were heard of, and since the order told its challenges. */
export const absentWaitMs = 90_000;
/** For so long an instance is waited for that is in touch and does not take the challenges. */
const silentWaitMs = 600_000;

/** An order tells whom it waits for after so long: most agents take a second. */
const waitToldMs = 5_000;

export type ChallengeStanding =
  | { readonly kind: "told" }
  /** `hosts` are told in words, once they are waited for unusually long. */
  | { readonly kind: "awaited"; readonly hosts: readonly string[] };

/**
 * Says whether the instances of the domain's sites have the challenges of an order, and tells those sites that do not
 * know of them: new ones, and ones of which an instance took a snapshot in place of the entry. An instance that refuses
 * them, as an agent that is too old does, is not waited for: whether visitors reach it is looked at next.
 */
export async function challengeStanding(
  work: Work,
  order: Whose & Pick<AcmeOrder, "publishedMs">,
  { isLive }: ChallengeReach,
): Promise<ChallengeStanding> {
  const { tx } = work;
  const nowMs = Date.parse(work.at);
  const linked = await sitesOfDomain(work, order.domainId);
  const told = await tx
    .selectFrom("acme_challenge_sites")
    .select(["deployment_site_id as deploymentSiteId", "seq"])
    .where("order_id", "=", order.id)
    .execute();
  const places = told.filter(({ deploymentSiteId }) => linked.includes(deploymentSiteId));
  const toTell = new Set(
    linked.filter((id) => !places.some(({ deploymentSiteId }) => deploymentSiteId === id)),
  );
  const proofOf = await readProofs(tx, places, nowMs);
  const openForMs = nowMs - (order.publishedMs ?? nowMs);
  const awaited: string[] = [];
  for (const place of places) {
    const { deploymentSiteId: site, seq } = place;
    for (const instance of proofOf(place).instances) {
      if (tookSnapshot(instance, seq)) toTell.add(site);
      else if (instance.state !== "pending") continue;
      else if (isLive(site, instance.instanceId)) {
        if (openForMs < silentWaitMs) awaited.push(silentText(instance, site));
      } else if (openForMs < absentWaitMs && isLately(instance, nowMs))
        awaited.push(absentText(instance, site));
    }
  }
  await tellChallenges(work, order, [...toTell]);
  if (awaited.length === 0 && toTell.size === 0) return { kind: "told" };
  return { kind: "awaited", hosts: openForMs < waitToldMs ? [] : awaited };
}

function silentText({ instanceId }: InstanceProof, site: number): string {
  return `the host ${instanceId} of deployment site ${site}, which is in touch and does not confirm the challenges`;
}

function absentText({ instanceId, lastSeen }: InstanceProof, site: number): string {
  return `the host ${instanceId} of deployment site ${site}, which was in touch last at ${lastSeen}`;
}

function tookSnapshot({ receipts }: InstanceProof, seq: number): boolean {
  return receipts.some((receipt) => receipt.seq !== seq && receipt.detail["snapshot"] === true);
}

function isLately({ lastSeen }: InstanceProof, nowMs: number): boolean {
  return nowMs - Date.parse(lastSeen) < absentWaitMs;
}
