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
  /** Whether any instance was ever there, and whether one told its release: with that come its edge facts, if it has any. */
  readonly wasSeen: boolean;
  readonly hasTold: boolean;
};

/** What is not known is undefined. */
export type Reporting = {
  readonly deploymentSiteId: number;
  /** When its agent last delivered logs or confirmed that it holds none back. */
  readonly logsConfirmedAt: string | undefined;
  /** Of the instance that was seen last. */
  readonly agentVersion: string | undefined;
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
        .select(["deployment_site_id", "edge", "agent_version"])
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
          hasTold: seen.some(({ agent_version: version }) => version !== ""),
        };
      });
    },

    /** One for each deployment of the domain, in order of id. */
    async reporting(domainId: number): Promise<readonly Reporting[]> {
      const rows = await tx
        .selectFrom("domain_links")
        .leftJoin("instances", "instances.deployment_site_id", "domain_links.deployment_site_id")
        .select([
          "domain_links.deployment_site_id as id",
          "instances.logs_confirmed_at as confirmed",
          "instances.agent_version as version",
        ])
        .where("domain_links.domain_id", "=", domainId)
        .orderBy("domain_links.deployment_site_id")
        .orderBy("instances.last_seen", "desc")
        .execute();
      return [...Map.groupBy(rows, ({ id }) => id)].map(([deploymentSiteId, instances]) => ({
        deploymentSiteId,
        logsConfirmedAt: instances
          .flatMap(({ confirmed }) => confirmed ?? [])
          .toSorted()
          .at(-1),
        // An instance may be known by name only.
        agentVersion: instances.find(({ version }) => (version ?? "") !== "")?.version ?? undefined,
      }));
    },
  };
}
