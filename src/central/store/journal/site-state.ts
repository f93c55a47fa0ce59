// The desired state of a deployment site as journal bodies: what changes append, and what a snapshot is made of.

import {
  effectiveClasses,
  effectivePolicies,
  type StoredPolicy,
} from "../bots/effective-policy.ts";
import { botClassKeys, classAccessOf } from "../../../wire/customer/bot-classes.ts";
import type { JournalBody, SiteStateField, SiteStates } from "../../../wire/journal.ts";
import type { Queries } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { TableRow } from "../engine/schema.ts";
import { elementPages } from "../bots/bot-elements.ts";
import { certificatesBody, keysBody } from "../vault/site-vault.ts";

type LinkedDomain = { readonly id: number; readonly name: string };

/** Returns the linked domains in order of name, so that equal states have equal bodies. */
export async function linkedDomains(
  db: Queries,
  deploymentSiteId: number,
): Promise<readonly LinkedDomain[]> {
  return db
    .selectFrom("domain_links")
    .innerJoin("domains", "domains.id", "domain_links.domain_id")
    .select(["domains.id", "domains.name"])
    .where("domain_links.deployment_site_id", "=", deploymentSiteId)
    .orderBy("domains.name")
    .execute();
}

/** Returns the sub-domains in the order in which they were added. */
export async function subDomainNames(db: Queries, domainId: number): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("sub_domains")
    .select("name")
    .where("domain_id", "=", domainId)
    .orderBy("id")
    .execute();
  return rows.map(({ name }) => name);
}

export async function domainsBody(
  db: Queries,
  deploymentSiteId: number,
): Promise<JournalBody<"domains.changed">> {
  const domains = await linkedDomains(db, deploymentSiteId);
  if (domains.length === 0) return { domains: [] };
  const ids = domains.map(({ id }) => id);
  const subDomains = await db
    .selectFrom("sub_domains")
    .select(["domain_id", "name", "share_views_and_views_dir_with_main_domain as share"])
    .where("domain_id", "in", ids)
    .orderBy("name")
    .execute();
  return {
    domains: domains.map(({ id, name }) => ({
      name,
      sub_domains: subDomains
        .filter(({ domain_id }) => domain_id === id)
        .map((sub) => ({
          name: sub.name,
          share_views_and_views_dir_with_main_domain: sub.share === 1,
        })),
    })),
  };
}

/** Sites whose domains, and with them whose policies, are the same: `one` of them, and `all`. */
export type Alike = { readonly one: number; readonly all: readonly number[] };

/** Parts the sites, which are of one customer, by what they serve: what is said to all alike is read and made once. */
export async function sitesAlike(
  db: Queries,
  deploymentSiteIds: readonly number[],
): Promise<readonly Alike[]> {
  const served = new Map<number, number[]>(deploymentSiteIds.map((id) => [id, []]));
  for (const part of parts([...served.keys()])) {
    const links = await db
      .selectFrom("domain_links")
      .select(["deployment_site_id as siteId", "domain_id as domainId"])
      .where("deployment_site_id", "in", part)
      .orderBy("domain_id")
      .execute();
    for (const { siteId, domainId } of links) served.get(siteId)?.push(domainId);
  }
  const alike = Map.groupBy(served.keys(), (id) => served.get(id)?.join(" "));
  return [...alike.values()].flatMap((all) => {
    const [one] = all;
    return one === undefined ? [] : [{ one, all }];
  });
}

export async function policyBody(
  db: Queries,
  deploymentSiteId: number,
): Promise<JournalBody<"policy.changed">> {
  return (await policyBodies(db, deploymentSiteId)).policy;
}

/** Both bodies that tell a site of its policies: those of all bots, and what they say of classes. */
export async function policyBodies(
  db: Queries,
  deploymentSiteId: number,
): Promise<{
  readonly policy: JournalBody<"policy.changed">;
  readonly classes: JournalBody<"policy.classes">;
}> {
  const { customer_id: customerId } = await db
    .selectFrom("deployment_sites")
    .select("customer_id")
    .where("id", "=", deploymentSiteId)
    .executeTakeFirstOrThrow();
  const { domains } = await domainsBody(db, deploymentSiteId);
  const stored = await storedPolicy(db, customerId);
  return {
    policy: { domains: effectivePolicies(domains, stored) },
    classes: { domains: effectiveClasses(domains, stored) },
  };
}

/** Size as JSON of what both policy bodies together of none of the customer's sites exceed. */
export async function policyBytes(db: Queries, customerId: number): Promise<number> {
  const domains = await db
    .selectFrom("domains")
    .select(["id", "name"])
    .where("customer_id", "=", customerId)
    .execute();
  const subDomains = await db
    .selectFrom("sub_domains")
    .select(["domain_id", "name"])
    .where("customer_id", "=", customerId)
    .execute();
  const subsOf = Map.groupBy(subDomains, (sub) => sub.domain_id);
  const hosts = domains.map(({ id, name }) => ({ name, sub_domains: subsOf.get(id) ?? [] }));
  const stored = await storedPolicy(db, customerId);
  return [effectivePolicies(hosts, stored), effectiveClasses(hosts, stored)]
    .map((body) => Buffer.byteLength(JSON.stringify(body)))
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** Returns what was said, in order of domain, then bot. */
export async function storedPolicy(db: Queries, customerId: number): Promise<StoredPolicy> {
  const pairs = await db
    .selectFrom("policy_pairs")
    .select(["list", "domain", "bot"])
    .where("customer_id", "=", customerId)
    .orderBy("list")
    .orderBy("domain")
    .orderBy("bot")
    .execute();
  return { ...(await storedAccess(db, customerId)), pairs };
}

/** Returns what was said, but for single bots. */
export async function storedAccess(
  db: Queries,
  customerId: number,
): Promise<Omit<StoredPolicy, "pairs">> {
  const general = await db
    .selectFrom("general_policies")
    .select("unknown_bots_can_access as access")
    .select(Object.values(botClassKeys))
    .where("customer_id", "=", customerId)
    .executeTakeFirst();
  const perDomain = await db
    .selectFrom("domain_policies")
    .select(["domain", "unknown_bots_can_access as access"])
    .select(Object.values(botClassKeys))
    .where("customer_id", "=", customerId)
    .orderBy("domain")
    .execute();
  return {
    general: general?.access ?? null,
    perDomain: new Map(perDomain.map(({ domain, access }) => [domain, access])),
    classes: {
      general: general === undefined ? {} : classAccessOf(general, isOne),
      perDomain: new Map(perDomain.map((row) => [row.domain, classAccessOf(row, isOne)])),
    },
  };
}

const isOne = (value: number): boolean => value === 1;

/** Undefined while no version of the domain was ever activated. */
export async function activeViewsetBody(
  db: Queries,
  domainId: number,
): Promise<JournalBody<"viewset.activated"> | undefined> {
  const row = await db
    .selectFrom("domains")
    .innerJoin("viewsets", "viewsets.id", "domains.active_viewset_id")
    .select(["domains.name as domain", "viewsets.id as viewset_id"])
    .select(["viewsets.name as viewset_name", "viewsets.manifest_blob as manifest"])
    .where("domains.id", "=", domainId)
    .executeTakeFirst();
  if (row === undefined || row.manifest === null) return undefined;
  return { ...row, manifest: row.manifest };
}

/** The states that a snapshot is made of, beside versions and sets. */
const stateBodies: {
  readonly [Field in SiteStateField]: (
    db: Queries,
    deploymentSiteId: number,
  ) => Promise<SiteStates[Field]>;
} = {
  policy: policyBody,
  domains: domainsBody,
  keys: keysBody,
  certificates: certificatesBody,
};

export async function readStates(db: Queries, deploymentSiteId: number): Promise<SiteStates> {
  const states: [string, unknown][] = [];
  for (const [field, read] of Object.entries(stateBodies))
    states.push([field, await read(db, deploymentSiteId)]);
  return Object.fromEntries(states) as SiteStates; // A row of the table for each field.
}

/** The facts that are told of a set. */
export type ToldSet = Pick<
  TableRow<"bot_sets">,
  "id" | "host" | "kind" | "version" | "count" | "digest" | "meant_from"
>;

/** Whether the set came down to what it is from at least twice as much by what was asked for. */
export function isShrinkMeant(set: Pick<ToldSet, "count" | "meant_from">): boolean {
  return set.meant_from > 0 && set.meant_from >= set.count * 2;
}

export async function botSetsOf(
  db: Queries,
  domainId: number,
): Promise<readonly TableRow<"bot_sets">[]> {
  return db
    .selectFrom("bot_sets")
    .selectAll()
    .where("domain_id", "=", domainId)
    .orderBy("id")
    .execute();
}

/** Yields the elements by bot, then range; a page takes a few milliseconds. */
export async function* botSetPages(
  db: Queries,
  botSetId: number,
): AsyncGenerator<{ bot: string; range: string }[]> {
  const bots = await db
    .selectFrom("bots")
    .select(["id", "name"])
    .where("bot_set_id", "=", botSetId)
    .orderBy("name")
    .execute();
  for (const { id, name: bot } of bots)
    for await (const page of elementPages(db, id)) yield page.map((range) => ({ bot, range }));
}

export async function botSetElements(
  db: Queries,
  botSetId: number,
): Promise<{ bot: string; range: string }[]> {
  const elements = [];
  for await (const page of botSetPages(db, botSetId)) elements.push(...page);
  return elements;
}
