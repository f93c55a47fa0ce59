// What is known of a customer's deployments as they run: which domains they serve, where they can be scraped, whether they report logs. By instance: a site may have several hosts.

import { decodeEdgeFacts } from "../journal/edge-facts.ts";
import type { EdgeFacts } from "../../../wire/channel.ts";
import type { Queries } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import { listedOf } from "../journal/proof.ts";
import { tagsOf } from "../engine/tags.ts";
import type { Work } from "../engine/work.ts";

/** The facts about an instance; one that is not known is undefined. */
export type InstanceFacts = {
  readonly instanceId: string;
  readonly lastSeen: string;
  /** When it last delivered logs or confirmed that it holds none back. */
  readonly logsConfirmedAt: string | undefined;
  /** It told its release; with that come its edge facts, if it has any. */
  readonly agentVersion: string | undefined;
  readonly edge: EdgeFacts | undefined;
};

export type DeploymentFacts = {
  readonly id: number;
  readonly name16: string;
  readonly tags: readonly string[];
  /** Main domains that it serves, in order of name. */
  readonly domains: readonly string[];
  /** Those of the last day, newest sight first; where there is none, the one seen last. */
  readonly instances: readonly InstanceFacts[];
};

export type Reporting = Pick<DeploymentFacts, "id" | "instances">;

export async function listDeployments(
  work: Work,
  customerId: number,
): Promise<readonly DeploymentFacts[]> {
  const { tx } = work;
  const nowMs = Date.parse(work.at);

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
  const tags = await tagsOf(tx, customerId);
  const linksOf = Map.groupBy(links, (link) => link.deployment_site_id);
  const instances = await instancesOf(
    tx,
    sites.map(({ id }) => id),
    nowMs,
  );
  return sites.map(({ id, name16 }) => ({
    id,
    name16,
    tags: tags.get(id) ?? [],
    domains: (linksOf.get(id) ?? []).map(({ name }) => name),
    instances: instances.get(id) ?? [],
  }));
}

/** One for each deployment of the domain, in order of id. */
export async function listReporting(work: Work, domainId: number): Promise<readonly Reporting[]> {
  const { tx } = work;
  const nowMs = Date.parse(work.at);

  const links = await tx
    .selectFrom("domain_links")
    .select("deployment_site_id as id")
    .where("domain_id", "=", domainId)
    .orderBy("deployment_site_id")
    .execute();
  const instances = await instancesOf(
    tx,
    links.map(({ id }) => id),
    nowMs,
  );
  return links.map(({ id }) => ({ id, instances: instances.get(id) ?? [] }));
}

async function instancesOf(
  db: Queries,
  siteIds: readonly number[],
  nowMs: number,
): Promise<ReadonlyMap<number, readonly InstanceFacts[]>> {
  const all = new Map<number, readonly InstanceFacts[]>();
  for (const part of parts(siteIds)) {
    const rows = await db
      .selectFrom("instances")
      .select(["deployment_site_id", "instance_id", "last_seen", "logs_confirmed_at"])
      .select(["agent_version", "edge"])
      .where("deployment_site_id", "in", part)
      .orderBy("last_seen", "desc")
      .orderBy("instance_id")
      .execute();
    for (const [siteId, its] of Map.groupBy(rows, (row) => row.deployment_site_id)) {
      const facts = its.map((row) => ({
        instanceId: row.instance_id,
        lastSeen: row.last_seen,
        logsConfirmedAt: row.logs_confirmed_at ?? undefined,
        // An instance may be known by name only.
        agentVersion: row.agent_version === "" ? undefined : row.agent_version,
        edge: row.edge === null ? undefined : decodeEdgeFacts(row.edge),
      }));
      all.set(siteId, listedOf(facts, nowMs));
    }
  }
  return all;
}
