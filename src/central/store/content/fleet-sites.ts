// A customer's deployment sites with what is known of each of their instances: what it said of itself, and where it stands in its site's journal. By pages, for
// reports are long.

import { chainStart } from "../../../core/journal/journal-chain.ts";
import { decodeWarnings, type Warning } from "../../../wire/channel.ts";
import { storeEpoch } from "../engine/database.ts";
import type { PageRange, Work } from "../engine/work.ts";
import { decodeEdgeFacts } from "../journal/edge-facts.ts";
import { listedOf } from "../journal/proof.ts";
import { refusedClasses } from "../journal/refused-classes.ts";
import type { Reach } from "../people/tokens.ts";
import { reaches } from "../people/tokens.ts";
import type { InstanceFacts } from "./deployments.ts";

export type StandingInstance = Omit<InstanceFacts, "edge"> & {
  /** What its settings call its host. */
  readonly host: string | undefined;
  /** How many entries it has not told to be done; undefined where its position is of another history, or was not told. */
  readonly entriesBehind: number | undefined;
  /** Whether its release refused what policies say of classes of bots. */
  readonly refusesClasses: boolean;
  /** Those of its last report. */
  readonly warnings: readonly Warning[];
};

export type StandingSite = {
  readonly id: number;
  readonly name16: string;
  readonly tags: readonly string[];
  /** Main domains that are linked to it and in reach, in order of name. */
  readonly domains: readonly string[];
  /** Those of the last day, newest sight first; where there is none, the one seen last. */
  readonly instances: readonly StandingInstance[];
};

/** Returns a page of sites in order of id: of a caller that reaches some domains alone, those that serve one of them. */
export async function fleetSites(
  work: Work,
  reach: Reach,
  { after, limit }: PageRange,
): Promise<readonly StandingSite[]> {
  const { tx } = work;
  const { customerId, domains } = reach;
  let query = tx
    .selectFrom("deployment_sites")
    .select(["id", "name16", "journal_head"])
    .where("customer_id", "=", customerId)
    .where("when_deleted", "is", null)
    .where("id", ">", after);
  if (domains !== null)
    query = query.where((site) =>
      site.exists(
        site
          .selectFrom("domain_links")
          .innerJoin("domains", "domains.id", "domain_links.domain_id")
          .select("domains.id")
          .whereRef("domain_links.deployment_site_id", "=", "deployment_sites.id")
          .where("domains.name", "in", domains),
      ),
    );
  const sites = await query.orderBy("id").limit(limit).execute();
  if (sites.length === 0) return [];
  const ids = sites.map(({ id }) => id);
  const links = await tx
    .selectFrom("domain_links")
    .innerJoin("domains", "domains.id", "domain_links.domain_id")
    .select(["deployment_site_id as id", "domains.name"])
    .where("deployment_site_id", "in", ids)
    .orderBy("domains.name")
    .execute();
  const tags = await tx
    .selectFrom("deployment_site_tags")
    .select(["deployment_site_id as id", "tag"])
    .where("deployment_site_id", "in", ids)
    .orderBy("position")
    .execute();
  const heads = new Map(sites.map(({ id, journal_head: head }) => [id, head]));
  const instances = await standingOf(work, heads);
  return sites.map(({ id, name16 }) => ({
    id,
    name16,
    tags: tags.filter((one) => one.id === id).map(({ tag }) => tag),
    domains: links
      .filter((link) => link.id === id && reaches(reach, link.name))
      .map(({ name }) => name),
    instances: instances.get(id) ?? [],
  }));
}

/** Returns the instances of sites, by id; each site comes with the head of its journal. */
async function standingOf(
  { tx, at }: Work,
  heads: ReadonlyMap<number, number>,
): Promise<ReadonlyMap<number, readonly StandingInstance[]>> {
  const epoch = await storeEpoch(tx);
  const rows = await tx
    .selectFrom("instances")
    .leftJoin("journal", (join) =>
      join
        .onRef("journal.deployment_site_id", "=", "instances.deployment_site_id")
        .onRef("journal.seq", "=", "instances.applied_seq"),
    )
    .select(["instances.deployment_site_id as siteId", "instance_id as instanceId"])
    .select(["last_seen as lastSeen", "logs_confirmed_at", "agent_version", "edge"])
    .select(["applied_seq", "epoch", "instances.chain", "journal.chain as journalChain"])
    .where("instances.deployment_site_id", "in", [...heads.keys()])
    .orderBy("last_seen", "desc")
    .orderBy("instance_id")
    .execute();
  const keyOf = (siteId: number, instanceId: string): string => `${siteId}/${instanceId}`;
  const refused = await refusedClasses(tx, { siteIds: [...heads.keys()] });
  const refusing = new Set(refused.map((one) => keyOf(one.siteId, one.instanceId)));
  const found = new Map<number, readonly StandingInstance[]>();
  for (const [siteId, its] of Map.groupBy(rows, (row) => row.siteId)) {
    const standing: StandingInstance[] = [];
    for (const row of listedOf(its, Date.parse(at))) {
      // The same judgement as of a hello: our store, and our digest at this place.
      const own = row.applied_seq === 0 ? chainStart : row.journalChain;
      const isOurs = row.epoch === epoch && row.chain === own;
      const { server_name: name = "" } = row.edge === null ? {} : (decodeEdgeFacts(row.edge) ?? {});
      standing.push({
        instanceId: row.instanceId,
        lastSeen: row.lastSeen,
        logsConfirmedAt: row.logs_confirmed_at ?? undefined,
        agentVersion: row.agent_version === "" ? undefined : row.agent_version,
        host: name === "" ? undefined : name,
        entriesBehind: isOurs ? Math.max(0, (heads.get(siteId) ?? 0) - row.applied_seq) : undefined,
        refusesClasses: refusing.has(keyOf(siteId, row.instanceId)),
        warnings: await warningsOf(tx, siteId, row.instanceId),
      });
    }
    found.set(siteId, standing);
  }
  return found;
}

/** Reports are read one by one, for those that are shown alone: each may have some 100 KB. */
async function warningsOf(
  tx: Work["tx"],
  siteId: number,
  instanceId: string,
): Promise<readonly Warning[]> {
  const row = await tx
    .selectFrom("instances")
    .select("last_report")
    .where((one) => one.and({ deployment_site_id: siteId, instance_id: instanceId }))
    .executeTakeFirst();
  if (row === undefined || row.last_report === null) return [];
  const { warnings = [] } = JSON.parse(row.last_report) as { readonly warnings?: unknown };
  // Decoded again, for releases differ.
  const decoded = decodeWarnings(warnings);
  return decoded.ok ? decoded.value : [];
}
