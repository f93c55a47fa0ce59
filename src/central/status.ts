// What central says about itself: to operators (`accel-central status`), and to whoever asks whether it is
// ready.

import type { Health } from "../base/health.ts";
import { createMetrics, type MetricTable, type Registry } from "../base/metrics.ts";
import { listenText } from "../base/settings-fields.ts";
import { isBehind, oldestRelease } from "../core/package-version.ts";
import type { Hub } from "./agents/hub.ts";
import type { Cluster } from "./cluster/cluster.ts";
import { centralJobs } from "./cluster/membership.ts";
import { canaryAges } from "./agents/log-canaries.ts";
import type { LogEngine } from "./agents/log-engine.ts";
import type { CentralSettings } from "./settings/fields.ts";
import { objectsText } from "./objects-opening.ts";
import { storeText } from "./store-opening.ts";
import { sleep } from "../base/wait.ts";
import { storeEpoch, type Store } from "./store/engine/database.ts";
import { isStoreAway } from "./store/engine/postgres-faults.ts";
import { hostNameOf, sitePositions, type SitePosition } from "./store/journal/instances.ts";
import { newestPackage } from "./store/packages/packages.ts";
import { countingOf, listedOf } from "./store/journal/proof.ts";
import { logsText } from "./request-logs.ts";
import { lastRestore } from "./store/engine/restores.ts";

export type StatusDeps = {
  readonly settings: CentralSettings;
  readonly version: string;
  /** When central started, ISO 8601. */
  readonly started: string;
  readonly store: Store;
  /** Whether the store is another program's. */
  readonly isStoreShared: boolean;
  readonly thread: LogEngine;
  readonly health: Health;
  readonly now: () => Date;
  readonly stop: AbortSignal;
  /** The other centrals at the store; undefined where this is the only one. */
  readonly others: Cluster | undefined;
};

export const warningMetrics = {
  accel_central_warning: {
    kind: "gauge",
    help: "Health warnings in force, by code and severity; docs/warnings.md says what each means. A code without a warning has no series.",
    labels: ["code", "severity"],
  },
} as const satisfies MetricTable;

/** Returns what sets the metrics of warnings before a scrape. */
export function tellWarnings(health: Health, registry: Registry): () => void {
  const { accel_central_warning: warning } = createMetrics(warningMetrics, registry);
  return () => {
    warning.reset();
    for (const { code, severity } of health.list()) warning.inc({ code, severity });
  };
}

const probeTimeoutMs = 5_000;
/** What is known to be away is asked all the same, for it may answer again by now. */
const awayProbeMs = 1_000;
const loneText = "this central alone has no way to the store";
const sitesListedMax = 1_000;

/**
 * Returns what keeps this central from doing its work; nothing if it is ready. A store that is another program's is no part of it: while that is away, another
 * central could answer nothing else, and this one says so in its own words; where another one says that it works, it is the one to be asked. So it is with a database of request logs, for which agents' spools wait.
 */
export async function unreadiness({
  store,
  isStoreShared,
  thread,
  stop,
  others,
}: StatusDeps): Promise<readonly string[]> {
  if (stop.aborted) return ["stopping"];
  if (others?.lone.isLone === true) return [loneText];
  const failed = async (what: string, asked: Promise<unknown>): Promise<readonly string[]> =>
    asked.then(
      () => [],
      () => [`the ${what} does not answer`],
    );
  return [
    ...(isStoreShared ? [] : await failed("store", storeEpoch(store))),
    ...(await failed("log thread", thread.probe(probeTimeoutMs))),
    ...(thread.failure === undefined || thread.isShared
      ? []
      : [`request logs cannot be stored: ${thread.failure}`]),
  ];
}

/** Returns the facts of `status`. Who looks while the store is away is to see what central knows without it: what only the store says is null then, and `store_answers` false. */
export async function centralStatus(deps: StatusDeps, hub: Hub, port: number): Promise<unknown> {
  const { settings, thread, health, version, started, now } = deps;
  const [stored, logs, ages] = await Promise.all([
    storedFacts(deps),
    thread.stats(thread.failure === undefined ? probeTimeoutMs : awayProbeMs).catch(() => null),
    canaryAges(thread, now()).catch(() => new Map<number, number>()),
  ]);
  const newest = stored?.newest?.version;
  return {
    version,
    started,
    listen: listenText({ ...settings.listen, port }),
    base_url: settings.base_url,
    store: storeText(settings),
    store_answers: stored !== undefined,
    objects: objectsText(settings),
    epoch: stored?.epoch ?? null,
    restored: stored?.restored ?? null,
    newest_package: newest ?? null,
    centrals: deps.others === undefined ? null : centralsOfStatus(deps.others),
    logs: {
      ...logs,
      place: logsText(settings),
      queue_bytes: thread.waitingBytes,
      failing: thread.failure ?? null,
    },
    deployment_sites:
      stored?.sites.map((site) => ({
        ...siteFacts(site, { hub, newest, nowMs: now().getTime() }),
        log_canary_age_seconds: rounded(ages.get(site.id)),
      })) ?? null,
    warnings: health.told(),
  };
}

/** Returns what the store says for `status`; undefined while it is away, or says nothing in time. */
async function storedFacts({ store, health }: Pick<StatusDeps, "store" | "health">) {
  const isAway = health.list().some(({ code }) => code === "store_unreachable");
  const mostMs = isAway ? awayProbeMs : probeTimeoutMs;
  const asked = Promise.all([
    sitePositions(store, sitesListedMax),
    newestPackage(store),
    storeEpoch(store),
    lastRestore(store),
  ]).then(
    ([sites, newest, epoch, restored]) => ({ sites, newest, epoch, restored }),
    (error: unknown) => {
      if (isStoreAway(error)) return undefined;
      throw error;
    },
  );
  const enough = new AbortController();
  try {
    return await Promise.race([asked, sleep(mostMs, enough.signal).then(() => undefined)]);
  } finally {
    enough.abort();
  }
}

/** Returns who works on the store beside this central, and which jobs this one does for all. */
function centralsOfStatus({ bus, membership }: Cluster) {
  return {
    id: bus.id,
    jobs: centralJobs.filter((job) => membership.does(job)),
    others: membership.rows.map(({ id, address, version, whenStarted: started, beats }) => {
      return { id, address, version, started, beats };
    }),
  };
}

/**
 * Returns what the site's agents told of themselves. The site stands where its instance stands that is
 * furthest behind, of those seen within 3 minutes, or else of the one seen last. Below it stands each
 * instance of the last day by itself. Null means not told.
 */
export function siteFacts(
  { id, name16, headSeq, instances }: SitePosition,
  context: {
    readonly hub: Pick<Hub, "isLive" | "isDuplicate">;
    readonly newest: string | undefined;
    readonly nowMs: number;
  },
) {
  const { hub, newest, nowMs } = context;
  const counting = countingOf(instances, nowMs);
  const applied = counting.map(({ appliedSeq }) => appliedSeq);
  const [furthestBehind] = counting.toSorted((a, b) => (a.appliedSeq ?? -1) - (b.appliedSeq ?? -1));
  const agentVersion = oldestRelease(counting.flatMap((one) => one.agentVersion ?? [])) ?? null;
  return {
    id,
    name16,
    live: hub.isLive(id),
    journal_head: headSeq,
    applied_seq: applied.includes(null) ? null : (furthestBehind?.appliedSeq ?? null),
    oldest_unfinished: furthestBehind?.oldestUnfinished ?? null,
    agent_version: agentVersion,
    behind: isBehind(agentVersion, newest) ?? null,
    last_seen: instances[0]?.lastSeen ?? null,
    instances: listedOf(instances, nowMs).map((one) => ({
      instance_id: one.instanceId,
      server_name: one.serverName,
      host_name: hostNameOf(one.lastReport),
      live: hub.isLive(id, one.instanceId),
      duplicate: hub.isDuplicate(id, one.instanceId),
      applied_seq: one.appliedSeq,
      oldest_unfinished: one.oldestUnfinished,
      position_told: one.positionAt,
      agent_version: one.agentVersion,
      behind: isBehind(one.agentVersion, newest) ?? null,
      last_seen: one.lastSeen,
      logs_confirmed: one.logsConfirmedAt,
    })),
  };
}

function rounded(seconds: number | undefined): number | null {
  return seconds === undefined ? null : Math.round(seconds);
}
