// The desired state of a deployment site as journal bodies: what changes append, and what a snapshot is made of.

import type { Sha256 } from "../../core/ids.ts";
import { effectivePolicies } from "./effective-policy.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { Queries } from "./database.ts";

type LinkedDomain = { readonly id: number; readonly name: string };

/** In order of name, so that equal states have equal bodies. */
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

export async function domainsBody(
  db: Queries,
  deploymentSiteId: number,
): Promise<JournalBody<"domains.changed">> {
  const domains = await linkedDomains(db, deploymentSiteId);
  if (domains.length === 0) return { domains: [] };
  const subDomains = await db
    .selectFrom("sub_domains")
    .select(["domain_id", "name", "share_views_and_views_dir_with_main_domain as share"])
    .where(
      "domain_id",
      "in",
      domains.map(({ id }) => id),
    )
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

export async function policyBody(
  db: Queries,
  deploymentSiteId: number,
): Promise<JournalBody<"policy.changed">> {
  const site = await db
    .selectFrom("deployment_sites")
    .select("customer_id")
    .where("id", "=", deploymentSiteId)
    .executeTakeFirstOrThrow();
  const { customer_id: customerId } = site;
  const { domains } = await domainsBody(db, deploymentSiteId);
  const [general, perDomain, pairs] = [
    await db
      .selectFrom("general_policies")
      .select("unknown_bots_can_access as access")
      .where("customer_id", "=", customerId)
      .executeTakeFirst(),
    await db
      .selectFrom("domain_policies")
      .select(["domain", "unknown_bots_can_access as access"])
      .where("customer_id", "=", customerId)
      .execute(),
    await db
      .selectFrom("policy_pairs")
      .select(["list", "domain", "bot"])
      .where("customer_id", "=", customerId)
      .execute(),
  ];
  return {
    domains: effectivePolicies(domains, {
      general: general?.access ?? null,
      perDomain: new Map(perDomain.map(({ domain, access }) => [domain, access])),
      pairs,
    }),
  };
}

/** Undefined while no version of the domain was ever activated. */
export async function activeViewsetBody(
  db: Queries,
  domainId: number,
): Promise<JournalBody<"viewset.activated"> | undefined> {
  const row = await db
    .selectFrom("domains")
    .innerJoin("viewsets", "viewsets.id", "domains.active_viewset_id")
    .select(["domains.name as domain", "viewsets.id", "viewsets.name", "viewsets.manifest_blob"])
    .where("domains.id", "=", domainId)
    .executeTakeFirst();
  if (row === undefined || row.manifest_blob === null) return undefined;
  return {
    domain: row.domain,
    viewset_id: row.id,
    viewset_name: row.name,
    manifest: row.manifest_blob as Sha256, // Written as the digest that the blob store answered.
  };
}

export type BotSetRow = {
  readonly id: number;
  readonly host: string;
  readonly kind: "bad" | "vip";
  readonly version: number;
  readonly count: number;
  readonly digest: Sha256;
};

export async function botSetsOf(db: Queries, domainId: number): Promise<readonly BotSetRow[]> {
  const rows = await db
    .selectFrom("bot_sets")
    .select(["id", "host", "kind", "version", "count", "digest"])
    .where("domain_id", "=", domainId)
    .orderBy("id")
    .execute();
  // Written by bots.ts alone, as core/set-digest makes them.
  return rows.map((row) => ({ ...row, digest: row.digest as Sha256 }));
}

/** Sorted by range, then bot: the order of a set's blob. */
export async function botSetElements(
  db: Queries,
  botSetId: number,
): Promise<{ bot: string; range: string }[]> {
  return db
    .selectFrom("bot_elements")
    .innerJoin("bots", "bots.id", "bot_elements.bot_id")
    .select(["bots.name as bot", "bot_elements.range"])
    .where("bots.bot_set_id", "=", botSetId)
    .orderBy("bot_elements.range")
    .orderBy("bots.name")
    .execute();
}
