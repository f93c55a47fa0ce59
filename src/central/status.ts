// What central tells of itself: to operators (`accel-central status`) and to whoever asks whether it is ready.

import type { Health } from "../base/health.ts";
import { isBehind } from "../core/package-version.ts";
import type { Hub } from "./agents/hub.ts";
import { canaryAges } from "./agents/log-canaries.ts";
import type { LogThread } from "./agents/log-client.ts";
import type { CentralSettings } from "./settings/fields.ts";
import { storeEpoch, type Store } from "./store/database.ts";
import { sitePositions } from "./store/instances.ts";
import { newestPackage } from "./store/packages.ts";
import { lastRestore } from "./store/restores.ts";

export type StatusDeps = {
  readonly settings: CentralSettings;
  readonly version: string;
  readonly store: Store;
  readonly thread: LogThread;
  readonly health: Health;
  readonly now: () => Date;
  readonly stop: AbortSignal;
};

const probeTimeoutMs = 5_000;
const sitesListedMax = 1_000;

/** What keeps central from doing its work; empty: ready. */
export async function unreadiness({ store, thread, stop }: StatusDeps): Promise<readonly string[]> {
  if (stop.aborted) return ["stopping"];
  const failed = async (what: string, asked: Promise<unknown>): Promise<readonly string[]> =>
    asked.then(
      () => [],
      () => [`the ${what} does not answer`],
    );
  return [
    ...(await failed("store", storeEpoch(store))),
    ...(await failed("log thread", thread.stats(probeTimeoutMs))),
    ...(thread.failure === undefined ? [] : [`request logs cannot be stored: ${thread.failure}`]),
  ];
}

export async function centralStatus(deps: StatusDeps, hub: Hub, port: number): Promise<unknown> {
  const { settings, store, thread, health, version, now } = deps;
  const sites = await sitePositions(store, sitesListedMax);
  const logs = await thread.stats(probeTimeoutMs).catch(() => null);
  const ages = await canaryAges(thread, now()).catch(() => new Map<number, number>());
  const newest = await newestPackage(store);
  return {
    version,
    listen: `${settings.listen.host}:${port}`,
    base_url: settings.base_url,
    epoch: await storeEpoch(store),
    restored: (await lastRestore(store)) ?? null,
    newest_package: newest?.version ?? null,
    logs: { ...logs, queue_bytes: thread.waitingBytes, failing: thread.failure ?? null },
    deployment_sites: sites.map(({ id, name16, headSeq, appliedSeq, agentVersion, lastSeen }) => ({
      id,
      name16,
      live: hub.isLive(id),
      journal_head: headSeq,
      applied_seq: appliedSeq,
      agent_version: agentVersion,
      behind: isBehind(agentVersion, newest?.version) ?? null,
      last_seen: lastSeen,
      log_canary_age_seconds: ages.get(id) ?? null,
    })),
    warnings: health.list(),
  };
}
