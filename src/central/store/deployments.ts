// What is known of a customer's deployments as they run: which domains they serve, where they can be scraped, whether they report logs.

import { decodeEdgeFacts } from "./edge-facts.ts";
import type { EdgeFacts } from "../../wire/channel.ts";
import { tagsOf } from "./tags.ts";
import type { Work } from "./work.ts";

export type DeploymentFacts = {
  readonly id: number;
  readonly name16: string;
  readonly tags: readonly string[];
  /** Main domains that it serves, in order of name. */
  readonly domains: readonly string[];
  /** As the instance that was seen last told them; undefined when none ever did. */
  readonly edge: EdgeFacts | undefined;
  /** Whether any instance ever said hello. */
  readonly wasSeen: boolean;
};

export function deployments(work: Work) {
  const { tx } = work;
  return {
    async list(customerId: number): Promise<readonly DeploymentFacts[]> {
      const sites = await tx
        .selectFrom("deployment_sites")
        .select(["id", "name16"])
        .where("customer_id", "=", customerId)
        .where("when_deleted", "is", null)
        .orderBy("id")
        .execute();
      const links = await tx
        .selectFrom("domain_links")
        .innerJoin("domains", "domains.id", "domain_links.domain_id")
        .select(["deployment_site_id", "domains.name"])
        .where("domains.customer_id", "=", customerId)
        .orderBy("domains.name")
        .execute();
      const instances = await tx
        .selectFrom("instances")
        .innerJoin("deployment_sites", "deployment_sites.id", "instances.deployment_site_id")
        .select(["deployment_site_id", "edge"])
        .where("deployment_sites.customer_id", "=", customerId)
        .orderBy("last_seen", "desc")
        .execute();
      const tags = await tagsOf(tx, customerId);
      const linksOf = Map.groupBy(links, (link) => link.deployment_site_id);
      const instancesOf = Map.groupBy(instances, (row) => row.deployment_site_id);
      return sites.map(({ id, name16 }) => {
        const seen = instancesOf.get(id) ?? [];
        const told = seen.find(({ edge }) => edge !== null)?.edge;
        return {
          id,
          name16,
          tags: tags.get(id) ?? [],
          domains: (linksOf.get(id) ?? []).map(({ name }) => name),
          edge: typeof told === "string" ? decodeEdgeFacts(told) : undefined,
          wasSeen: seen.length > 0,
        };
      });
    },

    /** One for each deployment of the domain, in order of id: when its agent last delivered logs or confirmed that it holds none back. */
    async logsConfirmed(domainId: number): Promise<readonly (string | undefined)[]> {
      const rows = await tx
        .selectFrom("domain_links")
        .leftJoin("instances", "instances.deployment_site_id", "domain_links.deployment_site_id")
        .select((select) => [
          "domain_links.deployment_site_id",
          select.fn.max("instances.logs_confirmed_at").as("confirmed"),
        ])
        .where("domain_links.domain_id", "=", domainId)
        .groupBy("domain_links.deployment_site_id")
        .orderBy("domain_links.deployment_site_id")
        .execute();
      return rows.map(({ confirmed }) => confirmed ?? undefined);
    },
  };
}
