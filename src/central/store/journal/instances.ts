// The instances of an agent that a deployment site has had: what they said of themselves and when they were last seen. Receipts belong to instances.

import { chainStart } from "../../../core/journal/journal-chain.ts";
import type { Hello, Report } from "../../../wire/channel.ts";
import type { OldestUnfinished, Position } from "../../../wire/position.ts";
import { storeEpoch, type Queries } from "../engine/database.ts";
import { noteDomains, type AlertRules } from "../content/domain-reports.ts";
import { seenLatelyMs } from "./proof.ts";
import type { StoreTables } from "../engine/schema.ts";
import { addUnreviewed } from "../bots/unreviewed-counting.ts";
import { parts } from "../engine/parts.ts";

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
  await change(db, key, {
    ...toldOf(hello),
    // The report that follows hello says what is under way.
    ...standing({ ...hello, oldest_unfinished: null }, at),
  });
}

/** The last one told counts: it is the agent's word, and central judges it only when it is shown (`sitePositions`). */
export async function savePosition(
  db: Queries,
  key: InstanceKey,
  position: Position,
  at: string,
): Promise<void> {
  await change(db, key, standing(position, at));
}

type InstanceChange = Partial<StoreTables["instances"]>;

async function change(db: Queries, key: InstanceKey, values: InstanceChange): Promise<void> {
  await db
    .updateTable("instances")
    .set(values)
    .where("deployment_site_id", "=", key.deploymentSiteId)
    .where("instance_id", "=", key.instanceId)
    .execute();
}

function standing(position: Position, at: string): InstanceChange {
  const { epoch, applied_seq, chain, oldest_unfinished: oldest } = position;
  return {
    epoch,
    applied_seq,
    chain,
    oldest_unfinished: oldest === null ? null : JSON.stringify(oldest),
    position_at: at,
  };
}

type Told = { agent_version?: string; edge?: string | null };

/** Returns what a report says of the instance, as it is stored; what it does not say stays as it is. */
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
  const key = { deploymentSiteId, instanceId: report.instance_id };
  await touchInstances(db, [key], at);
  await noteDomains(db, deploymentSiteId, report, at, rules);
  const isEmpty = report.spool.spooled === 0 && report.spool.in_memory === 0;
  await change(db, key, {
    last_report: JSON.stringify(report),
    ...toldOf(report),
    ...(report.position !== undefined && standing(report.position, at)),
    ...(isEmpty && { logs_confirmed_at: at }),
  });
  await addUnreviewed(db, deploymentSiteId, report, at);
}

/**
 * A batch of logs was taken from the instance. An agent of the release before does not say which it is: its delivery counts where one instance alone was seen lately,
 * and for nobody where there are several.
 */
export async function confirmLogs(
  db: Queries,
  deploymentSiteId: number,
  instanceId: string | undefined,
  at: string,
): Promise<void> {
  const from = instanceId ?? (await onlyInstance(db, deploymentSiteId, at));
  if (from === undefined) return;
  const key = { deploymentSiteId, instanceId: from };
  await touchInstances(db, [key], at);
  await change(db, key, { logs_confirmed_at: at });
}

async function onlyInstance(
  db: Queries,
  deploymentSiteId: number,
  at: string,
): Promise<string | undefined> {
  const lately = new Date(Date.parse(at) - seenLatelyMs).toISOString();
  const [only, second] = await db
    .selectFrom("instances")
    .select("instance_id")
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("last_seen", ">=", lately)
    .limit(2)
    .execute();
  return second === undefined ? only?.instance_id : undefined;
}

/**
 * The position that an instance proved in its site's journal, in its own words. What is not known is null.
 */
export type InstancePosition = {
  readonly instanceId: string;
  /** Everything up to here is done; null also where the position told belongs to another history than this store's. */
  readonly appliedSeq: number | null;
  readonly oldestUnfinished: OldestUnfinished | null;
  /** When it told its position. */
  readonly positionAt: string | null;
  readonly agentVersion: string | null;
  /** What the settings of its agent call the host (`edge.server_name`). */
  readonly serverName: string | null;
  /** Its last report as it is stored, which `hostNameOf` reads. */
  readonly lastReport: string | null;
  readonly lastSeen: string;
  readonly logsConfirmedAt: string | null;
};

/**
 * The position of a deployment site's journal and of its agents, for operators. Instances come by last sight,
 * newest first.
 */
export type SitePosition = {
  readonly id: number;
  readonly name16: string;
  readonly headSeq: number;
  readonly instances: readonly InstancePosition[];
};

export async function sitePositions(db: Queries, limit: number): Promise<readonly SitePosition[]> {
  const sites = await db
    .selectFrom("deployment_sites")
    .select(["id", "name16", "journal_head"])
    .where("when_deleted", "is", null)
    .orderBy("id")
    .limit(limit)
    .execute();
  const epoch = await storeEpoch(db);
  const rows = await db
    .selectFrom("instances")
    .leftJoin("journal", (join) =>
      join
        .onRef("journal.deployment_site_id", "=", "instances.deployment_site_id")
        .onRef("journal.seq", "=", "instances.applied_seq"),
    )
    .selectAll("instances")
    .select("journal.chain as journal_chain")
    .where("instances.deployment_site_id", ">=", sites[0]?.id ?? 0)
    .where("instances.deployment_site_id", "<=", sites.at(-1)?.id ?? 0)
    .orderBy("last_seen", "desc")
    .orderBy("instance_id")
    .execute();
  const bySite = Map.groupBy(rows, (row) => row.deployment_site_id);
  return sites.map(({ id, name16, journal_head: headSeq }) => ({
    id,
    name16,
    headSeq,
    instances: (bySite.get(id) ?? []).map((row) => {
      // The same judgement as of a hello: our store, and our digest at this place.
      const own = row.applied_seq === 0 ? chainStart : row.journal_chain;
      const isOurs = row.epoch === epoch && row.chain === own;
      const oldest = isOurs ? row.oldest_unfinished : null;
      return {
        instanceId: row.instance_id,
        appliedSeq: isOurs ? row.applied_seq : null,
        // As `standing` wrote it from a checked message.
        oldestUnfinished: oldest === null ? null : (JSON.parse(oldest) as OldestUnfinished),
        positionAt: row.position_at,
        agentVersion: row.agent_version === "" ? null : row.agent_version,
        serverName: serverNameOf(row.edge),
        lastReport: row.last_report,
        lastSeen: row.last_seen,
        logsConfirmedAt: row.logs_confirmed_at,
      };
    }),
  }));
}

/** Returns what a host calls itself, of an instance's stored report; null where it told nothing. A report may have 100 KB: read those that are shown alone. */
export function hostNameOf(lastReport: string | null): string | null {
  // As `saveReport` wrote it from a checked message.
  const { host_name: name } = JSON.parse(lastReport ?? "{}") as Pick<Report, "host_name">;
  return name ?? null;
}

function serverNameOf(edge: string | null): string | null {
  // As `toldOf` wrote it from a checked message.
  const { server_name: name = "" } = JSON.parse(edge ?? "{}") as { readonly server_name?: string };
  return name === "" ? null : name;
}

/** How people know a host: by its agent's settings, and by what it calls itself. */
export type HostTitle = { readonly serverName: string | null; readonly hostName: string | null };

/** Returns how people know the instances of these sites, by `<site>/<instance>`. */
export async function hostTitles(
  db: Queries,
  deploymentSiteIds: readonly number[],
): Promise<ReadonlyMap<string, HostTitle>> {
  const titles = new Map<string, HostTitle>();
  for (const part of parts([...new Set(deploymentSiteIds)], sitesPerRead)) {
    const rows = await db
      .selectFrom("instances")
      .select(["deployment_site_id", "instance_id", "edge", "last_report"])
      .where("deployment_site_id", "in", part)
      .execute();
    for (const { deployment_site_id: siteId, instance_id: instanceId, ...row } of rows)
      titles.set(`${siteId}/${instanceId}`, {
        serverName: serverNameOf(row.edge),
        hostName: hostNameOf(row.last_report),
      });
  }
  return titles;
}

/** Sites whose reports are in memory at once; one may have 100 KB. */
const sitesPerRead = 50;
const idCharsShown = 8;

/** Pure. Returns one name for a sentence; without any, what tells hosts of a site apart. */
export function titleOf(title: HostTitle | undefined, instanceId: string): string {
  return title?.serverName ?? title?.hostName ?? instanceId.slice(0, idCharsShown);
}

/** Returns what the instances of these sites call their servers, by `<site>/<instance>`; those that say nothing are left out. */
export async function hostNames(
  db: Queries,
  deploymentSiteIds: readonly number[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const part of parts([...new Set(deploymentSiteIds)])) {
    const rows = await db
      .selectFrom("instances")
      .select(["deployment_site_id", "instance_id", "edge"])
      .where("deployment_site_id", "in", part)
      .where("edge", "is not", null)
      .execute();
    for (const { deployment_site_id: siteId, instance_id: instanceId, edge } of rows) {
      const name = serverNameOf(edge);
      if (name !== null) names.set(`${siteId}/${instanceId}`, name);
    }
  }
  return names;
}
