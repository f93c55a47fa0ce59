// Customers, and what goes with one that is deleted.

import { removeDomain } from "../content/domains.ts";
import { removeSite } from "../journal/sites.ts";
import type { TableRow } from "../engine/schema.ts";
import type { Work } from "../engine/work.ts";

export async function findCustomer(
  { tx }: Work,
  id: number,
): Promise<TableRow<"customers"> | undefined> {
  return tx.selectFrom("customers").selectAll().where("id", "=", id).executeTakeFirst();
}

/** Nobody may delete it until it has its first user. */
export async function addCustomer({ tx, at }: Work, name: string): Promise<number> {
  const { id } = await tx
    .insertInto("customers")
    .values({ name, created_by_user_id: null, when_created: at })
    .returning("id")
    .executeTakeFirstOrThrow();
  return id;
}

export async function renameCustomer({ tx }: Work, id: number, name: string): Promise<void> {
  await tx.updateTable("customers").set({ name }).where("id", "=", id).execute();
}

/**
 * Removes a customer with all that it owns; agents are told and revoked. Returns the sites whose channels
 * are to be closed.
 */
export async function removeCustomer(work: Work, id: number): Promise<readonly number[]> {
  const { tx } = work;
  const sites = await tx
    .selectFrom("deployment_sites")
    .select("id")
    .where((site) => site.and({ customer_id: id, when_deleted: null }))
    .execute();
  for (const site of sites) await removeSite(work, site.id);
  const domains = await tx
    .selectFrom("domains")
    .select("id")
    .where("customer_id", "=", id)
    .execute();
  for (const domain of domains) await removeDomain(work, domain.id);
  await tx.deleteFrom("customers").where("id", "=", id).execute();
  return sites.map((site) => site.id);
}
