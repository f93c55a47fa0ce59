// Which deployment site serves which domain, and what the agents are told when that changes.
//
// A link by tags is a standing rule: it is evaluated again whenever a site's tags or the rule change. A link by id stays until it is taken back.

import { sql } from "kysely";
import type { Appended } from "./journal.ts";
import { insertListed } from "../engine/listed.ts";
import { append, type Work } from "../engine/work.ts";
import { askNewSites } from "./preparations.ts";
import {
  activeViewsetBody,
  botSetElements,
  botSetsOf,
  domainsBody,
  isShrinkMeant,
  policyBodies,
  sitesAlike,
} from "./site-state.ts";
import { announceClasses } from "./told-classes.ts";
import { tagsOf } from "../engine/tags.ts";
import type { TableRow } from "../engine/schema.ts";

type Link = { readonly domainId: number; readonly deploymentSiteId: number };

export async function sitesOfDomain(work: Work, domainId: number): Promise<readonly number[]> {
  const rows = await work.tx
    .selectFrom("domain_links")
    .select("deployment_site_id")
    .where("domain_id", "=", domainId)
    .orderBy("deployment_site_id")
    .execute();
  return rows.map((row) => row.deployment_site_id);
}

/** Adds or confirms a link by id. */
export async function linkById(work: Work, link: Link): Promise<void> {
  const had = await work.tx
    .selectFrom("domain_links")
    .select("by_id")
    .where("domain_id", "=", link.domainId)
    .where("deployment_site_id", "=", link.deploymentSiteId)
    .executeTakeFirst();
  await work.tx
    .insertInto("domain_links")
    .values({ domain_id: link.domainId, deployment_site_id: link.deploymentSiteId, by_id: 1 })
    .onConflict((conflict) =>
      conflict.columns(["domain_id", "deployment_site_id"]).doUpdateSet({ by_id: 1 }),
    )
    .execute();
  if (had === undefined) await announceLinks(work, [link], []);
}

export type Unlinked = "unlinked" | "by-tags" | "not-linked";

/** Takes back a link by id. Where the domain's tags match the site too, it stays linked by them. */
export async function unlinkById(work: Work, link: Link): Promise<Unlinked> {
  const had = await work.tx
    .selectFrom("domain_links")
    .select("by_id")
    .where("domain_id", "=", link.domainId)
    .where("deployment_site_id", "=", link.deploymentSiteId)
    .executeTakeFirst();
  if (had === undefined) return "not-linked";
  if (had.by_id === 0) return "by-tags";
  await work.tx
    .updateTable("domain_links")
    .set({ by_id: 0 })
    .where("domain_id", "=", link.domainId)
    .where("deployment_site_id", "=", link.deploymentSiteId)
    .execute();
  const { customer_id } = await work.tx
    .selectFrom("domains")
    .select("customer_id")
    .where("id", "=", link.domainId)
    .executeTakeFirstOrThrow();
  await applyTagRules(work, customer_id);
  return "unlinked";
}

/** Brings the links by tags of all domains of a customer to what the rules say now. */
export async function applyTagRules(work: Work, customerId: number): Promise<void> {
  const rules = await work.tx
    .selectFrom("domains")
    .select(["id", "link_tags"])
    .where("customer_id", "=", customerId)
    .execute();
  const tags = await tagsOf(work.tx, customerId);
  const links = await work.tx
    .selectFrom("domain_links")
    .innerJoin("domains", "domains.id", "domain_links.domain_id")
    .select(["domain_id", "deployment_site_id", "by_id"])
    .where("domains.customer_id", "=", customerId)
    .execute();
  const keyOf = (domainId: number, siteId: number): string => `${domainId}/${siteId}`;
  const had = new Map(
    links.map((link) => [keyOf(link.domain_id, link.deployment_site_id), link.by_id]),
  );
  const [gained, lost]: [Link[], Link[]] = [[], []];
  for (const { id: domainId, link_tags } of rules) {
    const wanted = link_tags === null ? [] : parseTagList(link_tags);
    for (const [deploymentSiteId, held] of tags) {
      const matches = wanted.length > 0 && wanted.every((tag) => held.includes(tag));
      const byId = had.get(keyOf(domainId, deploymentSiteId));
      if (matches && byId === undefined) gained.push({ domainId, deploymentSiteId });
      if (!matches && byId === 0) lost.push({ domainId, deploymentSiteId });
    }
  }
  await insertListed(
    work.tx,
    "domain_links",
    { domain_id: "integer", deployment_site_id: "integer", by_id: "integer" },
    gained.map(({ domainId, deploymentSiteId }) => {
      return { domain_id: domainId, deployment_site_id: deploymentSiteId, by_id: 0 };
    }),
  );
  for (const link of lost) await removeLink(work, link);
  await announceLinks(work, gained, lost);
}

/** Written by this store alone, as a JSON list of strings. */
function parseTagList(json: string): readonly string[] {
  const list: unknown = JSON.parse(json);
  return Array.isArray(list) ? list.map(String) : [];
}

async function removeLink(work: Work, { domainId, deploymentSiteId }: Link): Promise<void> {
  for (const table of ["domain_links", "viewset_deployments"] as const) {
    await work.tx
      .deleteFrom(table)
      .where("domain_id", "=", domainId)
      .where("deployment_site_id", "=", deploymentSiteId)
      .execute();
  }
}

/** Tells the sites: their domains, then what belongs to those that are new there, then their policy. The links themselves are written already. */
async function announceLinks(
  work: Work,
  gained: readonly Link[],
  lost: readonly Link[],
): Promise<void> {
  const siteIds = [...new Set([...gained, ...lost].map((link) => link.deploymentSiteId))];
  await announceDomains(work, siteIds);
  const sitesByDomain = Map.groupBy(gained, (link) => link.domainId);
  for (const [domainId, links] of sitesByDomain) {
    const newSites = links.map((link) => link.deploymentSiteId);
    await announceViewset(work, domainId, newSites);
    await askNewSites(work, domainId, newSites);
    for (const set of await botSetsOf(work.tx, domainId)) await announceSet(work, set, newSites);
  }
  await announcePolicy(work, siteIds);
}

export async function announceDomains(work: Work, siteIds: readonly number[]): Promise<void> {
  for (const alike of await sitesAlike(work.tx, siteIds))
    await append(work, alike.all, "domains.changed", await domainsBody(work.tx, alike.one));
}

export async function announcePolicy(work: Work, siteIds: readonly number[]): Promise<void> {
  for (const alike of await sitesAlike(work.tx, siteIds)) {
    const { policy, classes } = await policyBodies(work.tx, alike.one);
    await announceClasses(work, alike.all, classes);
    await append(work, alike.all, "policy.changed", policy);
  }
}

/** Tells the sites of the active version, if there is one, and notes where in their journals: the receipts of that entry are the proof. */
export async function announceViewset(
  work: Work,
  domainId: number,
  siteIds: readonly number[],
): Promise<void> {
  const body = await activeViewsetBody(work.tx, domainId);
  if (body === undefined) return;
  const entries = await append(work, siteIds, "viewset.activated", body);
  await insertListed(
    work.tx,
    "viewset_deployments",
    { domain_id: "integer", deployment_site_id: "integer", viewset_id: "integer", seq: "bigint" },
    entries.map(({ deploymentSiteId, seq }) => ({
      domain_id: domainId,
      deployment_site_id: deploymentSiteId,
      viewset_id: body.viewset_id,
      seq,
    })),
    sql`ON CONFLICT (domain_id, deployment_site_id) DO UPDATE SET viewset_id = excluded.viewset_id, seq = excluded.seq`,
  );
}

/** Above so many elements an entry names the set by its digest only: its `from_version` fits no agent that has another, which then fetches the whole. */
export const inlineElementsMax = 10_000; // Times about 60 bytes: 600 KB of a channel message of at most 8 MiB.

async function announceSet(
  work: Work,
  set: TableRow<"bot_sets">,
  siteIds: readonly number[],
): Promise<void> {
  if (set.version === 0) return;
  const inline = set.count <= inlineElementsMax;
  const entries = await append(work, siteIds, "bots.changed", {
    domain: set.host,
    set: set.kind,
    from_version: inline ? 0 : set.version,
    to_version: set.version,
    added: inline ? await botSetElements(work.tx, set.id) : [],
    removed: [],
    count: set.count,
    digest: set.digest,
    shrink_meant: isShrinkMeant(set),
  });
  await noteEntries(work, set, entries);
}

/** Notes where the journals tell of the set: the receipts of these entries prove it. */
export async function noteEntries(
  { tx }: Work,
  set: { readonly id: number; readonly version: number },
  entries: readonly Appended[],
): Promise<void> {
  const rows = entries.map(({ deploymentSiteId, seq }) => ({
    bot_set_id: set.id,
    deployment_site_id: deploymentSiteId,
    version: set.version,
    seq,
  }));
  await insertListed(
    tx,
    "bot_set_deployments",
    { bot_set_id: "integer", deployment_site_id: "integer", version: "bigint", seq: "bigint" },
    rows,
    sql`ON CONFLICT (bot_set_id, deployment_site_id) DO UPDATE SET version = excluded.version, seq = excluded.seq`,
  );
}
