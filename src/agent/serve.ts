// What serves: viewsets and the sites on this host, the workers, and the state that they serve, first as it was committed before.

import { entryUrl } from "../base/entry.ts";
import type { Log } from "../base/log.ts";
import { messageOf } from "../core/faults.ts";
import { openWorkers, type WorkerPool } from "./accelerator/workers.ts";
import type { Ground } from "./ground.ts";
import type { ImportProgress } from "./link/link.ts";
import type { AgentSettings } from "./settings/fields.ts";
import { healViewset, restoreState } from "./steering/restore.ts";
import { Serving } from "./steering/serving.ts";
import { openLocalSites, type LocalSites } from "./viewset/local-sites.ts";
import { openViewsets, type Viewsets } from "./viewset/viewsets.ts";
import type { WorkerParts } from "./worker.ts";

export type Served = {
  readonly viewsets: Viewsets;
  readonly locals: LocalSites;
  readonly pool: WorkerPool;
  readonly serving: Serving;
  /** Resolves when every committed viewset is whole again, or with stop. */
  readonly healing: Promise<unknown>;
};

export async function openServing(
  stack: AsyncDisposableStack,
  ground: Ground,
  onProgress: (progress: ImportProgress) => void,
): Promise<Served> {
  const { options, common, db, client, sets, tables } = ground;
  const { settings, log, random, stop } = options;
  const backendRules = { backendGuard: ownListenerGuard(settings) };
  const viewsets = await openViewsets({
    stateDir: settings.state_dir,
    central: client,
    sites: settings.sites,
    backendRules,
    onProgress,
    ...common,
  });
  // Local sites ask who is served, and serving asks for local sites: the second is there before the first is asked.
  const late: { serving?: Serving } = {};
  const locals = stack.use(
    await openLocalSites({
      sites: settings.sites,
      watchViews: settings.watch_views,
      names: (domain) => late.serving?.names(domain),
      backendRules,
      onChange: (domain) => republish(domain, late.serving, log),
      onViews: (domain, paths) =>
        log.debug({ domain, files: paths?.length }, "views changed on this host"),
      ...common,
    }),
  );
  const pool = stack.use(await openPool(ground, viewsets.blobsDir));
  const serving = new Serving({ documents: db, sets, tables, locals, pool });
  late.serving = serving;
  const restored = { serving, documents: db, viewsets, log, random, stop };
  const torn = await restoreState(restored);
  await pool.start(); // Visitors arrive when the committed state is there to meet them.
  const healing = Promise.all(torn.map((domain) => healViewset(domain, restored)));
  return { viewsets, locals, pool, serving, healing };
}

async function openPool(
  { options, common, workers, index, spool, unreviewed: bots, decisions: log }: Ground,
  blobsDir: string,
): Promise<WorkerPool> {
  const { settings, random, logLevels } = options;
  return openWorkers({
    count: workers,
    entry: entryUrl(import.meta.url, "./worker"),
    openParts: () => {
      const cache = index.workerInit();
      const lane = spool.openLane();
      const unreviewed = bots.openWorker();
      const decisions = log.openWorker(workers);
      const logLevel = logLevels.openThread();
      const data: WorkerParts = {
        cache,
        lane,
        unreviewed,
        decisions,
        logLevel,
      };
      const ports = [cache.port, lane.port, unreviewed, decisions.port, logLevel.port];
      return { data, transfer: ports };
    },
    listen: settings["accelerator.listen"],
    proxies: {
      trusted: settings["accelerator.trusted_proxies"],
      forwardedHeader: settings["accelerator.forwarded_header"],
      proxyProtocol: settings["accelerator.proxy_protocol"],
    },
    defaultDomain: settings["accelerator.default_domain"] ?? null,
    blobsDir,
    drainGraceMs: settings["accelerator.drain_grace"],
    random,
    ...common,
  });
}

function republish(domain: string, serving: Serving | undefined, log: Log): void {
  serving?.publish().then(
    () => log.info({ domain }, "the devlove on this host changed and is served"),
    (error: unknown) =>
      log.error(
        { domain, error: messageOf(error) },
        "the changed devlove on this host could not be published",
      ),
  );
}

/** A backend that is the agent itself would answer itself until something gives in. */
function ownListenerGuard(settings: AgentSettings): (url: URL) => string | undefined {
  const own = [settings["accelerator.listen"], settings["metrics.listen"]];
  return ({ hostname, port, protocol }) => {
    const asked = Number(port === "" ? (protocol === "https:" ? 443 : 80) : port);
    const here = hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
    const itself = own.some(
      (listen) => listen.port === asked && (here || listen.host === hostname),
    );
    return itself ? "is a listener of the agent itself" : undefined;
  };
}
