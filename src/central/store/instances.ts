// The instances of an agent that a deployment site has had: what they said of themselves and when they were last seen. Receipts belong to instances.

import type { Hello, Report } from "../../wire/channel.ts";
import type { Queries } from "./database.ts";
import { noteDomains, type AlertRules } from "./domain-reports.ts";
import { addUnreviewed } from "./unreviewed-counting.ts";
import { parts } from "./parts.ts";

export type InstanceKey = { readonly deploymentSiteId: number; readonly instanceId: string };

/** They are seen now. An instance that told nothing of itself yet is known by name only. */
export async function touchInstances(
  db: Queries,
  keys: readonly InstanceKey[],
  at: string,
): Promise<void> {
  // Each once: one statement cannot change a row twice.
  const distinct = new Map(
    keys.map((key) => [`${key.deploymentSiteId} ${key.instanceId}`, key] as const),
  );
  for (const part of parts([...distinct.values()]))
    await db
      .insertInto("instances")
      .values(
        part.map(({ deploymentSiteId, instanceId }) => ({
          deployment_site_id: deploymentSiteId,
          instance_id: instanceId,
          agent_version: "",
          edge: null,
          applied_seq: 0,
          last_seen: at,
          last_report: null,
          logs_confirmed_at: null,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(["deployment_site_id", "instance_id"]).doUpdateSet({ last_seen: at }),
      )
      .execute();
}

export async function saveHello(
  db: Queries,
  deploymentSiteId: number,
  hello: Hello,
  at: string,
): Promise<void> {
  const key = { deploymentSiteId, instanceId: hello.instance_id };
  await touchInstances(db, [key], at);
  await db
    .updateTable("instances")
    .set({
      ...toldOf(hello),
      applied_seq: hello.applied_seq,
    })
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("instance_id", "=", hello.instance_id)
    .execute();
}

type Told = { agent_version?: string; edge?: string | null };

/** What it says of itself, as it is stored; what it does not say stays as it is. */
function toldOf({ agent_version, edge }: Pick<Report, "agent_version" | "edge">): Told {
  return {
    ...(agent_version !== undefined && { agent_version }),
    ...(edge !== undefined && { edge: edge === null ? null : JSON.stringify(edge) }),
  };
}

/** A report of an empty spool proves as much as a delivery that nothing is held back. */
export async function saveReport(
  db: Queries,
  deploymentSiteId: number,
  report: Report,
  at: string,
  rules?: AlertRules,
): Promise<void> {
  await touchInstances(db, [{ deploymentSiteId, instanceId: report.instance_id }], at);
  await noteDomains(db, deploymentSiteId, report, at, rules);
  const isEmpty = report.spool.spooled === 0 && report.spool.in_memory === 0;
  await db
    .updateTable("instances")
    .set({
      last_report: JSON.stringify(report),
      ...toldOf(report),
      ...(isEmpty && { logs_confirmed_at: at }),
    })
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("instance_id", "=", report.instance_id)
    .execute();
  await addUnreviewed(db, deploymentSiteId, report, at);
}

/** Batches of logs name their lane, not their instance: the delivery is noted with the one seen last. */
export async function confirmLogs(
  db: Queries,
  deploymentSiteId: number,
  at: string,
): Promise<void> {
  const latest = await db
    .selectFrom("instances")
    .select("instance_id")
    .where("deployment_site_id", "=", deploymentSiteId)
    .orderBy("last_seen", "desc")
    .executeTakeFirst();
  if (latest === undefined) return;
  await db
    .updateTable("instances")
    .set({ logs_confirmed_at: at })
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("instance_id", "=", latest.instance_id)
    .execute();
}

/** Where each deployment site's journal and its agents stand, for operators. */
export type SitePosition = {
  readonly id: number;
  readonly name16: string;
  readonly headSeq: number;
  /** Of the instance that was seen last; null: none ever was. */
  readonly appliedSeq: number | null;
  readonly agentVersion: string | null;
  readonly lastSeen: string | null;
};

export async function sitePositions(db: Queries, limit: number): Promise<readonly SitePosition[]> {
  const sites = await db
    .selectFrom("deployment_sites")
    .select(["id", "name16", "journal_head"])
    .where("when_deleted", "is", null)
    .orderBy("id")
    .limit(limit)
    .execute();
  const instances = await db
    .selectFrom("instances")
    .select(["deployment_site_id", "applied_seq", "agent_version", "last_seen"])
    .where("deployment_site_id", ">=", sites[0]?.id ?? 0)
    .where("deployment_site_id", "<=", sites.at(-1)?.id ?? 0)
    .orderBy("last_seen", "desc")
    .execute();
  const bySite = Map.groupBy(instances, (row) => row.deployment_site_id);
  return sites.map(({ id, name16, journal_head: headSeq }) => {
    const latest = bySite.get(id)?.[0];
    return {
      id,
      name16,
      headSeq,
      appliedSeq: latest?.applied_seq ?? null,
      agentVersion: latest?.agent_version ?? null,
      lastSeen: latest?.last_seen ?? null,
    };
  });
}
