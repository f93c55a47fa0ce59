// The instances of an agent that a deployment site has had: what they said of themselves and when they were last seen. Receipts belong to instances.

import { sql } from "kysely";
import { chainStart } from "../../../core/journal/journal-chain.ts";
import type { Hello, Report } from "../../../wire/channel.ts";
import type { OldestUnfinished } from "../../../wire/position.ts";
import { storeEpoch, type Queries } from "../engine/database.ts";
import { noteDomains, type AlertRules } from "../content/domain-reports.ts";
import { seenLatelyMs } from "./proof.ts";
import { addUnreviewed } from "../bots/unreviewed-counting.ts";
import { listed, rowsAtOnce, type RowOf } from "../engine/listed.ts";
import { parts } from "../engine/parts.ts";
import { instanceKeyText, noteSeen, standingAt, type SeenInstance } from "./instances-seen.ts";

export type GivenHello = { readonly deploymentSiteId: number; readonly hello: Hello };

export async function saveHello(
  db: Queries,
  deploymentSiteId: number,
  hello: Hello,
  at: string,
): Promise<void> {
  await saveHellos(db, [{ deploymentSiteId, hello }], at);
}

export async function saveHellos(
  db: Queries,
  given: readonly GivenHello[],
  at: string,
): Promise<void> {
  const seen = given.map(({ deploymentSiteId, hello }) => ({
    deploymentSiteId,
    instanceId: hello.instance_id,
    self: hello,
    // The report that follows hello says what is under way.
    position: { ...hello, oldest_unfinished: null },
  }));
  await noteSeen(db, seen, at);
}

type Told = { agent_version?: string; edge?: string | null };

/** Returns what a report says of the instance, as it is stored; what it does not say stays as it is. */
function toldOf({ agent_version, edge }: Pick<Report, "agent_version" | "edge">): Told {
  return {
    ...(agent_version !== undefined && { agent_version }),
    ...(edge !== undefined && { edge: edge === null ? null : JSON.stringify(edge) }),
  };
}

export type GivenReport = { readonly deploymentSiteId: number; readonly report: Report };

export async function saveReport(
  db: Queries,
  deploymentSiteId: number,
  report: Report,
  at: string,
  rules?: AlertRules,
): Promise<void> {
  await saveReports(db, [{ deploymentSiteId, report }], at, rules);
}

/** Saves reports of many instances, several of one in the order in which they came. A report of an empty spool proves as much as a delivery that nothing is held back. */
export async function saveReports(
  db: Queries,
  given: readonly GivenReport[],
  at: string,
  rules?: AlertRules,
): Promise<void> {
  const byInstance = Map.groupBy(
    given,
    ({ deploymentSiteId, report: { instance_id: instanceId } }) =>
      instanceKeyText({ deploymentSiteId, instanceId }),
  );
  const rounds = Math.max(0, ...[...byInstance.values()].map((own) => own.length));
  for (let round = 0; round < rounds; round++) {
    // Each instance once: what one report adds is the difference to the one before.
    const all = [...byInstance.values()].flatMap((own) => own.slice(round, round + 1));
    // Without what they say: it is written behind what is read of the report before.
    await noteSeen(
      db,
      all.map(({ deploymentSiteId, report }) => ({
        deploymentSiteId,
        instanceId: report.instance_id,
      })),
      at,
    );
    await noteDomains(db, all, at, rules);
    await keepReports(db, all, at);
    for (const { deploymentSiteId, report } of all)
      await addUnreviewed(db, deploymentSiteId, report, at);
  }
}

const reportColumns = {
  deployment_site_id: "integer",
  instance_id: "text",
  last_report: "text",
  agent_version: "text?",
  tells_edge: "integer",
  edge: "text?",
  logs_confirmed_at: "text?",
  epoch: "text?",
  applied_seq: "bigint",
  chain: "text?",
  oldest_unfinished: "text?",
  position_at: "text?",
} as const;

/** Writes what reports say of their instances; what they do not say stays as it is. */
async function keepReports(db: Queries, all: readonly GivenReport[], at: string): Promise<void> {
  const rows = all.map(({ deploymentSiteId, report }) => reportRow(deploymentSiteId, report, at));
  for (const part of parts(rows, rowsAtOnce(db))) {
    const given = listed(db, reportColumns, part);
    await sql`
      UPDATE instances SET
        last_report = told.last_report,
        agent_version = coalesce(told.agent_version, instances.agent_version),
        edge = CASE WHEN told.tells_edge = 1 THEN told.edge ELSE instances.edge END,
        logs_confirmed_at = coalesce(told.logs_confirmed_at, instances.logs_confirmed_at),
        epoch = CASE WHEN told.position_at IS NULL THEN instances.epoch ELSE told.epoch END,
        applied_seq = CASE WHEN told.position_at IS NULL THEN instances.applied_seq ELSE told.applied_seq END,
        chain = CASE WHEN told.position_at IS NULL THEN instances.chain ELSE told.chain END,
        oldest_unfinished = CASE WHEN told.position_at IS NULL THEN instances.oldest_unfinished ELSE told.oldest_unfinished END,
        position_at = coalesce(told.position_at, instances.position_at)
      FROM ${given} AS told
      WHERE instances.deployment_site_id = told.deployment_site_id AND instances.instance_id = told.instance_id
    `.execute(db);
  }
}

function reportRow(
  deploymentSiteId: number,
  report: Report,
  at: string,
): RowOf<typeof reportColumns> {
  const { spool, position } = report;
  const told = toldOf(report);
  const isEmpty = spool.spooled === 0 && spool.in_memory === 0;
  const stands = position === undefined ? undefined : standingAt(position, at);
  return {
    deployment_site_id: deploymentSiteId,
    instance_id: report.instance_id,
    last_report: JSON.stringify(report),
    agent_version: told.agent_version ?? null,
    tells_edge: "edge" in told ? 1 : 0,
    edge: told.edge ?? null,
    logs_confirmed_at: isEmpty ? at : null,
    epoch: stands?.epoch ?? null,
    applied_seq: stands?.applied_seq ?? 0,
    chain: stands?.chain ?? null,
    oldest_unfinished: stands?.oldest_unfinished ?? null,
    position_at: stands?.position_at ?? null,
  };
}

/** A delivery of logs; of an agent of the release before, which does not say which instance it is, the instance is undefined. */
export type LogDelivery = {
  readonly deploymentSiteId: number;
  readonly instanceId: string | undefined;
};

/**
 * Batches of logs were taken from the instances. A delivery that does not say which instance it is from counts where one instance alone was seen lately, and for nobody
 * where there are several.
 */
export async function confirmDeliveries(
  db: Queries,
  deliveries: readonly LogDelivery[],
  at: string,
): Promise<void> {
  const seen: SeenInstance[] = [];
  for (const { deploymentSiteId, instanceId } of deliveries) {
    const from = instanceId ?? (await onlyInstance(db, deploymentSiteId, at));
    if (from !== undefined) seen.push({ deploymentSiteId, instanceId: from, hasDelivered: true });
  }
  await noteSeen(db, seen, at);
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
        // As `standingAt` wrote it from a checked message.
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
