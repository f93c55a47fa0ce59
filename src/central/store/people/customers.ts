// Customers, and what goes with one that is deleted.

import { removeDomain } from "../content/domains.ts";
import { removeSite } from "../journal/sites.ts";
import type { Work } from "../engine/work.ts";

export type CustomerRow = {
  readonly id: number;
  readonly name: string;
  readonly createdByUserId: number | null;
};

export function customers(work: Work) {
  const { tx } = work;
  return {
    async find(id: number): Promise<CustomerRow | undefined> {
      return tx
        .selectFrom("customers")
        .select(["id", "name", "created_by_user_id as createdByUserId"])
        .where("id", "=", id)
        .executeTakeFirst();
    },

    async rename(id: number, name: string): Promise<void> {
      await tx.updateTable("customers").set({ name }).where("id", "=", id).execute();
    },

    /**
     * Removes a customer with all that it owns; agents are told and revoked. Returns the sites whose channels
     * are to be closed.
     */
    async remove(id: number): Promise<readonly number[]> {
      const sites = await tx
        .selectFrom("deployment_sites")
        .select("id")
        .where("customer_id", "=", id)
        .where("when_deleted", "is", null)
        .execute();
      for (const site of sites) await removeSite(work, site.id);
      const domains = await tx
        .selectFrom("domains")
        .select(["id", "name"])
        .where("customer_id", "=", id)
        .execute();
      for (const domain of domains) await removeDomain(work, domain.id);
      await tx.deleteFrom("customers").where("id", "=", id).execute();
      return sites.map((site) => site.id);
    },
  };
}
