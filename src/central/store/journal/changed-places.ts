// What changed where, for hints: whose a site is, which domains it serves, and what entries of its journal are about.

import { parts } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";
import type { JournalPlace } from "./proof.ts";

type Reading = Pick<Work, "tx">;

/** Returns the customers of sites, by site. */
export async function ownersOfSites(
  { tx }: Reading,
  siteIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const owners = new Map<number, number>();
  for (const part of parts(siteIds)) {
    const rows = await tx
      .selectFrom("deployment_sites")
      .select(["id", "customer_id"])
      .where("id", "in", part)
      .execute();
    for (const { id, customer_id: customerId } of rows) owners.set(id, customerId);
  }
  return owners;
}

/** Returns the main domains that sites serve, by site. */
export async function domainsOfSites(
  { tx }: Reading,
  siteIds: readonly number[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  const names = new Map<number, string[]>();
  for (const part of parts(siteIds)) {
    const rows = await tx
      .selectFrom("domain_links")
      .innerJoin("domains", "domains.id", "domain_links.domain_id")
      .select(["deployment_site_id as id", "domains.name"])
      .where("deployment_site_id", "in", part)
      .execute();
    for (const { id, name } of rows) {
      const before = names.get(id);
      if (before === undefined) names.set(id, [name]);
      else before.push(name);
    }
  }
  return names;
}

export type EntryAbout = {
  readonly siteId: number;
  readonly kind: string;
  /** Undefined for an entry about the site as a whole. */
  readonly domain: string | undefined;
};

/** Returns what entries are about; those that are not there any more are left out. Meant for a few. */
export async function entriesAbout(
  { tx }: Reading,
  places: readonly JournalPlace[],
): Promise<readonly EntryAbout[]> {
  const found: EntryAbout[] = [];
  for (const { deploymentSiteId: siteId, seq } of places) {
    const row = await tx
      .selectFrom("journal")
      .innerJoin("journal_bodies", "journal_bodies.digest", "journal.body_digest")
      .select(["kind", "body"])
      .where("deployment_site_id", "=", siteId)
      .where("seq", "=", seq)
      .executeTakeFirst();
    if (row === undefined) continue;
    // Written by appendJournal from a checked body.
    const { domain } = JSON.parse(row.body) as { readonly domain?: unknown };
    found.push({ siteId, kind: row.kind, domain: typeof domain === "string" ? domain : undefined });
  }
  return found;
}
