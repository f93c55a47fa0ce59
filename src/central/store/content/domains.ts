// Main domains and their sub-domains. Names are canonical (lower-case A-labels) and unique per customer across both.

import type { Domain } from "../../../wire/customer/domain.ts";
import {
  announceDomains,
  announcePolicy,
  applyTagRules,
  linkById,
  sitesOfDomain,
} from "../journal/links.ts";
import { wholeCustomer, type Reach } from "../people/tokens.ts";
import type { PageRange, Work } from "../engine/work.ts";

export type DomainRow = {
  readonly id: number;
  readonly name: string;
  readonly createdByUserId: number;
  readonly activeViewsetId: number | null;
};

/** A host of the customer: a main domain, or a sub-domain with the main domain it stands below. */
export type HostRow = {
  readonly domainId: number;
  readonly main: string;
  readonly host: string;
};

export async function findDomain(
  { tx }: Work,
  customerId: number,
  name: string,
): Promise<DomainRow | undefined> {
  return tx
    .selectFrom("domains")
    .select([
      "id",
      "name",
      "created_by_user_id as createdByUserId",
      "active_viewset_id as activeViewsetId",
    ])
    .where("customer_id", "=", customerId)
    .where("name", "=", name)
    .executeTakeFirst();
}

export async function domainRecord(
  work: Work,
  customerId: number,
  id: number,
): Promise<Domain | undefined> {
  const [domain] = await listDomains(work, wholeCustomer(customerId), { after: id - 1, limit: 1 });
  return domain?.id === id ? domain : undefined;
}

type Owner = { readonly customerId: number; readonly userId: number };
export type NewDomain = {
  readonly name: string;
  /** Standing rule; empty: none. */
  readonly tags: readonly string[];
  readonly deploymentSiteId: number | undefined;
};
/** `share` undefined: as it is, false for a new one. */
export type SubDomainChange = { readonly name: string; readonly share: boolean | undefined };

export async function listDomains(
  { tx }: Work,
  { customerId, domains }: Reach,
  range: PageRange,
): Promise<readonly Domain[]> {
  let query = tx.selectFrom("domains").select(["id", "name"]);
  if (domains !== null) query = query.where("name", "in", domains);
  const rows = await query
    .where("customer_id", "=", customerId)
    .where("id", ">", range.after)
    .orderBy("id")
    .limit(range.limit)
    .execute();
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const subDomains = await tx
    .selectFrom("sub_domains")
    .select(["domain_id", "name", "share_views_and_views_dir_with_main_domain as share"])
    .where("domain_id", "in", ids)
    .orderBy("id")
    .execute();
  const links = await tx
    .selectFrom("domain_links")
    .select(["domain_id", "deployment_site_id"])
    .where("domain_id", "in", ids)
    .orderBy("deployment_site_id")
    .execute();
  const subsOf = Map.groupBy(subDomains, (row) => row.domain_id);
  const linksOf = Map.groupBy(links, (row) => row.domain_id);
  return rows.map(({ id, name }) => ({
    id,
    name,
    sub_domains: (subsOf.get(id) ?? []).map((sub) => ({
      name: sub.name,
      share_views_and_views_dir_with_main_domain: sub.share === 1,
    })),
    deployment_sites: (linksOf.get(id) ?? []).map((link) => ({ id: link.deployment_site_id })),
  }));
}

export async function findHost(
  { tx }: Work,
  customerId: number,
  name: string,
): Promise<HostRow | undefined> {
  const main = await tx
    .selectFrom("domains")
    .select("id")
    .where("customer_id", "=", customerId)
    .where("name", "=", name)
    .executeTakeFirst();
  if (main !== undefined) return { domainId: main.id, main: name, host: name };
  const sub = await tx
    .selectFrom("sub_domains")
    .innerJoin("domains", "domains.id", "sub_domains.domain_id")
    .select(["domains.id", "domains.name"])
    .where("sub_domains.customer_id", "=", customerId)
    .where("sub_domains.name", "=", name)
    .executeTakeFirst();
  return sub === undefined ? undefined : { domainId: sub.id, main: sub.name, host: name };
}

export async function addDomain(
  work: Work,
  owner: Owner,
  { name, tags, deploymentSiteId }: NewDomain,
): Promise<number | "taken"> {
  if ((await findHost(work, owner.customerId, name)) !== undefined) return "taken";
  const { id } = await work.tx
    .insertInto("domains")
    .values({
      customer_id: owner.customerId,
      created_by_user_id: owner.userId,
      name,
      link_tags: tags.length === 0 ? null : JSON.stringify(tags),
      active_viewset_id: null,
      when_created: work.at,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  work.concerned.add(name);
  if (tags.length > 0) await applyTagRules(work, owner.customerId);
  if (deploymentSiteId !== undefined) await linkById(work, { domainId: id, deploymentSiteId });
  return id;
}

/** Adds it, or changes the one of that name. `taken`: the name belongs to another domain of the customer. */
export async function writeSubDomain(
  work: Work,
  customerId: number,
  domain: DomainRow,
  { name, share }: SubDomainChange,
): Promise<"done" | "taken"> {
  const holder = await findHost(work, customerId, name);
  if (holder !== undefined && (holder.domainId !== domain.id || holder.host === holder.main))
    return "taken";
  const { tx } = work;
  if (holder === undefined) {
    await tx
      .insertInto("sub_domains")
      .values({
        domain_id: domain.id,
        customer_id: customerId,
        name,
        share_views_and_views_dir_with_main_domain: share === true ? 1 : 0,
      })
      .execute();
  } else if (share === undefined) {
    return "done";
  } else {
    await tx
      .updateTable("sub_domains")
      .set({ share_views_and_views_dir_with_main_domain: share ? 1 : 0 })
      .where("domain_id", "=", domain.id)
      .where("name", "=", name)
      .execute();
  }
  await announceDomains(work, await sitesOfDomain(work, domain.id));
  return "done";
}

/** Removes a domain with its links, versions, marks and policies, and tells its sites. */
export async function removeDomain(work: Work, id: number): Promise<void> {
  const { tx } = work;
  const { customer_id: customerId, name } = await tx
    .selectFrom("domains")
    .select(["customer_id", "name"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const subs = await tx
    .selectFrom("sub_domains")
    .select("name")
    .where("domain_id", "=", id)
    .execute();
  const siteIds = await sitesOfDomain(work, id);
  for (const table of ["domain_policies", "policy_pairs"] as const) {
    await tx
      .deleteFrom(table)
      .where("customer_id", "=", customerId)
      .where("domain", "in", [name, ...subs.map((sub) => sub.name)])
      .execute();
  }
  await tx.deleteFrom("domains").where("id", "=", id).execute();
  await announceDomains(work, siteIds);
  await announcePolicy(work, siteIds);
}
