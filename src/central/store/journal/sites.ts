// Deployment sites: name, sealed secret, tags; deleting one tells its agent and revokes all it could come back with.

import { chainStart } from "../../../core/journal/journal-chain.ts";
import type { DeploymentSite } from "../../../wire/customer/deployment-site.ts";
import type { Queries } from "../engine/database.ts";
import { applyTagRules } from "./links.ts";
import { secretContext } from "./site-secret.ts";
import { emptyVault } from "../vault/site-vault.ts";
import { addKey, resealKeys } from "../vault/symmetric-keys.ts";
import { replaceTags, tagsOf } from "../engine/tags.ts";
import { append, type PageRange, type Work } from "../engine/work.ts";

export type SiteRow = {
  readonly id: number;
  readonly name16: string;
  readonly createdByUserId: number;
};

type Owner = { readonly customerId: number; readonly userId: number };
/** Returns a site as the customer sees it. */
export async function siteRecord(
  work: Work,
  customerId: number,
  id: number,
): Promise<DeploymentSite | undefined> {
  const [site] = await listSites(work, customerId, { after: id - 1, limit: 1 });
  return site?.id === id ? site : undefined;
}

export async function findSite(
  work: Work,
  customerId: number,
  id: number,
): Promise<SiteRow | undefined> {
  return ownSites(work, customerId).where("id", "=", id).executeTakeFirst();
}

export async function findSiteByName(
  work: Work,
  customerId: number,
  name16: string,
): Promise<SiteRow | undefined> {
  return ownSites(work, customerId).where("name16", "=", name16).executeTakeFirst();
}

export async function setTags(
  work: Work,
  customerId: number,
  id: number,
  tags: readonly string[],
): Promise<void> {
  await replaceTags(work.tx, id, tags);
  await applyTagRules(work, customerId);
}

function ownSites({ tx }: Work, customerId: number) {
  return tx
    .selectFrom("deployment_sites")
    .select(["id", "name16", "created_by_user_id as createdByUserId"])
    .where("customer_id", "=", customerId)
    .where("when_deleted", "is", null);
}

export async function listSites(
  { tx, sealer }: Work,
  customerId: number,
  range: PageRange,
): Promise<readonly DeploymentSite[]> {
  const rows = await tx
    .selectFrom("deployment_sites")
    .innerJoin("customers", "customers.id", "deployment_sites.customer_id")
    .select([
      "deployment_sites.id",
      "deployment_sites.name16",
      "deployment_sites.secret_sealed",
      "customers.name as customer",
    ])
    .where("deployment_sites.customer_id", "=", customerId)
    .where("deployment_sites.when_deleted", "is", null)
    .where("deployment_sites.id", ">", range.after)
    .orderBy("deployment_sites.id")
    .limit(range.limit)
    .execute();
  if (rows.length === 0) return [];
  const tags = await tagsOf(tx, customerId);
  return rows.map((row) => ({
    id: row.id,
    customer: { name: row.customer },
    name16: row.name16,
    secret16: sealer.open(row.secret_sealed, secretContext(row.name16)),
    deployment_tags: (tags.get(row.id) ?? []).join(","),
  }));
}

/** Creates a site with its first key. Domains whose tags it has are linked at once. */
export async function createSite(
  work: Work,
  owner: Owner,
  tags: readonly string[],
): Promise<number> {
  const { tx, at, sealer, randomHex } = work;
  const [name16, secret16] = [randomHex(8), randomHex(16)];
  const { id } = await tx
    .insertInto("deployment_sites")
    .values({
      customer_id: owner.customerId,
      created_by_user_id: owner.userId,
      name16,
      secret_sealed: sealer.seal(secret16, secretContext(name16)),
      when_created: at,
      when_deleted: null,
      journal_head: 0,
      journal_chain: chainStart,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await addKey(work, { id, name16, secret16 });
  await replaceTags(tx, id, tags);
  await applyTagRules(work, owner.customerId);
  return id;
}

/** How many secrets of before are accepted at a time. */
export const oldSecretsMax = 8;

/** The secret before is accepted until `oldUntil` (ISO 8601); undefined revokes it, all before it, and every token of the site. */
export async function rotateSecret(
  work: Work,
  id: number,
  oldUntil: string | undefined,
): Promise<void> {
  const { tx, sealer, randomHex } = work;
  const secret16 = randomHex(16);
  const { name16, secret_sealed } = await tx
    .selectFrom("deployment_sites")
    .select(["name16", "secret_sealed"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  await keepOld(work, id, secret_sealed, oldUntil);
  await tx
    .updateTable("deployment_sites")
    .set({ secret_sealed: sealer.seal(secret16, secretContext(name16)) })
    .where("id", "=", id)
    .execute();
  await resealKeys(work, { id, name16, secret16 });
  if (oldUntil === undefined) await shutSite(work, id);
}

/** Revokes every token of the site. Its channels are closed after the commit, by whoever holds them. */
async function shutSite({ tx }: Work, id: number): Promise<void> {
  await tx.deleteFrom("agent_tokens").where("deployment_site_id", "=", id).execute();
  await tx
    .updateTable("deployment_sites")
    .set((set) => ({ shut_count: set("shut_count", "+", 1) }))
    .where("id", "=", id)
    .execute();
}

/** Hosts may be away for more than one rotation: secrets of before stay until their grace ends, but not beyond that of `sealed`. */
async function keepOld(
  { tx, at }: Work,
  siteId: number,
  sealed: string,
  until: string | undefined,
): Promise<void> {
  const before = await tx
    .selectFrom("old_secrets")
    .select(["id", "until"])
    .where("deployment_site_id", "=", siteId)
    .orderBy("id", "desc")
    .execute();
  const kept =
    until === undefined ? [] : before.filter((one) => one.until > at).slice(0, oldSecretsMax - 1);
  for (const one of before)
    if (!kept.includes(one)) await tx.deleteFrom("old_secrets").where("id", "=", one.id).execute();
  if (until === undefined) return;
  await tx
    .updateTable("old_secrets")
    .set({ until })
    .where("deployment_site_id", "=", siteId)
    .where("until", ">", until)
    .execute();
  await tx
    .insertInto("old_secrets")
    .values({ deployment_site_id: siteId, secret_sealed: sealed, until })
    .execute();
}

/** The row stays with name and secret, so that an agent that was away learns `site_deleted`. */
export async function removeSite(work: Work, id: number): Promise<void> {
  const { tx, at } = work;
  await tx.deleteFrom("domain_links").where("deployment_site_id", "=", id).execute();
  await tx.deleteFrom("viewset_deployments").where("deployment_site_id", "=", id).execute();
  await tx.deleteFrom("deployment_site_tags").where("deployment_site_id", "=", id).execute();
  await emptyVault(work, id);
  await tx
    .updateTable("imports")
    .set({ state: "failed", error: "the deployment site was deleted", when_ended: at })
    .where("deployment_site_id", "=", id)
    .where("state", "=", "started")
    .execute();
  await append(work, [id], "domains.changed", { domains: [] });
  await shutSite(work, id);
  await tx.updateTable("deployment_sites").set({ when_deleted: at }).where("id", "=", id).execute();
}

/** `name16` by id, of those that are not deleted. */
export async function siteNames(db: Queries): Promise<ReadonlyMap<number, string>> {
  const rows = await db
    .selectFrom("deployment_sites")
    .select(["id", "name16"])
    .where("when_deleted", "is", null)
    .execute();
  return new Map(rows.map(({ id, name16 }) => [id, name16]));
}

/** A site as operators see it: whose it is, and without its secret. */
export type SiteLine = {
  readonly id: number;
  readonly name16: string;
  readonly customer_id: number;
  readonly tags: string;
  readonly when_created: string;
};

/** Lists the sites of all customers, or of one. */
export async function sitesOfAll(
  { tx }: Work,
  { customerId }: { readonly customerId?: number | undefined },
  range: PageRange,
): Promise<readonly SiteLine[]> {
  let query = tx
    .selectFrom("deployment_sites")
    .select(["id", "name16", "customer_id", "when_created"])
    .where("when_deleted", "is", null)
    .where("id", ">", range.after);
  if (customerId !== undefined) query = query.where("customer_id", "=", customerId);
  const rows = await query.orderBy("id").limit(range.limit).execute();
  if (rows.length === 0) return [];
  const tags = await tx
    .selectFrom("deployment_site_tags")
    .select(["deployment_site_id", "tag"])
    .where(
      "deployment_site_id",
      "in",
      rows.map(({ id }) => id),
    )
    .orderBy("position")
    .execute();
  return rows.map((row) => ({
    ...row,
    tags: tags
      .filter(({ deployment_site_id: id }) => id === row.id)
      .map(({ tag }) => tag)
      .join(","),
  }));
}
