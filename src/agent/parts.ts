// The agent's parts, composed: each is opened here with what it needs, in an order whose reverse is the order of stopping.
//
//   database → client → spool → shipper → cache index → sets, viewsets, local sites → workers → first state → link → admin
// Stopping: admin and link first, then the workers drain, their last records are spooled and shipped, then what they stood on.

import { availableParallelism } from "node:os";
import { join } from "node:path";
import { entryUrl } from "../base/entry.ts";
import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import { Registry } from "../base/metrics.ts";
import { sleep } from "../base/wait.ts";
import type { Secret16 } from "../core/ids.ts";
import { messageOf } from "../core/faults.ts";
import { startWorkers, type WorkerPool } from "./accelerator/workers.ts";
import { edgeFacts } from "./admin/edge-facts.ts";
import type { Heartbeats } from "./admin/watchdog.ts";
import { SetStore } from "./bots/set-store.ts";
import { startIndexer, type IndexClient } from "./cache/index-client.ts";
import { openAgentDb, type AgentDb } from "./link/agent-db.ts";
import { CentralClient } from "./link/central-client.ts";
import { startLink, type Link } from "./link/link.ts";
import { getBotSetContent } from "./link/bot-set-content.ts";
import { createReporter, openOperators } from "./operators.ts";
import { startShipper } from "./requests/shipper.ts";
import { startSpooler, type SpoolClient } from "./requests/spool-client.ts";
import type { AgentSettings } from "./settings/fields.ts";
import { createAppliers, type SteeringPorts } from "./steering/appliers.ts";
import { healViewset, restoreState } from "./steering/restore.ts";
import { Serving } from "./steering/serving.ts";
import { applySnapshot } from "./steering/snapshot.ts";
import { openLocalSites, type LocalSites } from "./viewset/local-sites.ts";
import { openViewsets, type Viewsets } from "./viewset/viewsets.ts";
import type { WorkerParts } from "./worker.ts";

export type AgentOptions = {
  readonly settings: AgentSettings;
  readonly secret16: Secret16;
  readonly caPem: string | undefined;
  readonly version: string;
  /** 16 hex characters, random per start: names this start's lanes. */
  readonly bootEpoch: string;
  readonly health: Health;
  readonly log: Log;
  readonly now: () => Date;
  readonly random: () => number;
  readonly stop: AbortSignal;
};

export type Agent = AsyncDisposable & {
  readonly listen: string;
  readonly metricsListen: string;
  readonly heartbeats: Heartbeats;
};

/** What the later parts are composed from. */
export type AgentParts = {
  readonly options: AgentOptions;
  readonly registry: Registry;
  readonly db: AgentDb;
  readonly client: CentralClient;
  readonly spool: SpoolClient;
  readonly index: IndexClient;
  readonly sets: SetStore;
  readonly viewsets: Viewsets;
  readonly pool: WorkerPool;
  readonly serving: Serving;
  readonly link: Link;
};

/** Throws an AccelError naming what cannot be opened; everything opened before is closed again. */
export async function openAgent(options: AgentOptions): Promise<Agent> {
  const { settings, health, log, now, random, stop } = options;
  await using stack = new AsyncDisposableStack();
  const registry = new Registry();
  const common = { registry, health, log, stop };
  const db = stack.use(openAgentDb(join(settings.state_dir, "agent.db")));
  if (db.setAside !== undefined)
    log.error(
      { set_aside: db.setAside },
      "agent.db was damaged and set aside; the state is fetched again",
    );
  // The last records are shipped after `stop`, so the client ends when it is disposed and not before.
  const clientEnd = new AbortController();
  const client = stack.use(openClient(options, clientEnd.signal));
  stack.defer(() => clientEnd.abort());
  const spool = stack.use(await openSpool(options, registry));
  stack.use(
    startShipper({
      spool,
      post: (batch, signal) => client.postRequestLogs(batch, signal),
      random,
      ...common,
    }),
  );
  const workers =
    settings["accelerator.workers"] === 0
      ? Math.min(availableParallelism(), 16)
      : settings["accelerator.workers"];
  const index = stack.use(openIndex(options, registry, workers, db.ledger.lastClearSeq));
  const sets = new SetStore(db.sqlite);
  const backendRules = { backendGuard: ownListenerGuard(settings) };
  const link: { current: Link | undefined } = { current: undefined };
  const viewsets = await openViewsets({
    stateDir: settings.state_dir,
    central: client,
    sites: settings.sites,
    backendRules,
    onProgress: (progress) => link.current?.progress(progress),
    ...common,
  });
  const serving: { current: Serving | undefined } = { current: undefined };
  const locals = stack.use(
    await openLocalSites({
      sites: settings.sites,
      watchViews: settings.watch_views,
      names: (domain) => serving.current?.names(domain),
      backendRules,
      onChange: (domain) => republish(domain, serving.current, log),
      onViews: (domain, paths) =>
        log.debug({ domain, files: paths?.length }, "views changed on this host"),
      ...common,
    }),
  );
  const pool = stack.use(
    await openPool(options, registry, { workers, index, spool, blobsDir: viewsets.blobsDir }),
  );
  serving.current = new Serving({ documents: db, sets, locals, pool });
  const restored = { serving: serving.current, documents: db, viewsets, log, random, stop };
  const torn = await restoreState(restored);
  const healing = Promise.all(torn.map((domain) => healViewset(domain, restored)));
  link.current = stack.use(
    openLink(options, {
      registry,
      db,
      client,
      spool,
      index,
      sets,
      viewsets,
      pool,
      serving: serving.current,
      locals,
    }),
  );
  const parts: AgentParts = {
    options,
    registry,
    db,
    client,
    spool,
    index,
    sets,
    viewsets,
    pool,
    serving: serving.current,
    link: link.current,
  };
  const confirming = confirmOrNot(parts);
  const metricsListen = await openOperators(stack, parts);
  const owned = stack.move();
  return {
    listen: `${settings["accelerator.listen"].host}:${pool.port}`,
    metricsListen,
    heartbeats: { read: () => ({ ...pool.heartbeats(), spool: spool.heartbeat() }) },
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync();
      await Promise.all([healing, confirming]);
    },
  };
}

function openClient({ settings, secret16, caPem }: AgentOptions, stop: AbortSignal): CentralClient {
  const { central_url: centralUrl, name16 } = settings;
  return new CentralClient({ centralUrl, caPem, name16, secret16, stop });
}

async function openSpool(
  { settings, bootEpoch, health, log }: AgentOptions,
  registry: Registry,
): Promise<SpoolClient> {
  return startSpooler({
    entry: entryUrl(import.meta.url, "./spooler"),
    stateDir: settings.state_dir,
    spoolMax: settings["spool.max"],
    fsync: { intervalMs: settings["spool.fsync_interval"], bytes: 262_144 },
    bootEpoch,
    registry,
    health,
    log,
  });
}

function openIndex(
  { settings, health, log, stop }: AgentOptions,
  registry: Registry,
  workers: number,
  lastClearSeq: number,
): IndexClient {
  return startIndexer({
    entry: entryUrl(import.meta.url, "./indexer"),
    matcherEntry: entryUrl(import.meta.url, "./matcher"),
    stateDir: settings.state_dir,
    diskMax: settings["cache.disk_max"],
    memoryMax: settings["cache.memory_max"],
    workers,
    lastClearSeq,
    registry,
    health,
    log,
    stop,
  });
}

type PoolParts = {
  readonly workers: number;
  readonly index: IndexClient;
  readonly spool: SpoolClient;
  readonly blobsDir: string;
};

async function openPool(
  { settings, health, log, random, stop }: AgentOptions,
  registry: Registry,
  { workers, index, spool, blobsDir }: PoolParts,
): Promise<WorkerPool> {
  return startWorkers({
    count: workers,
    entry: entryUrl(import.meta.url, "./worker"),
    openParts: () => {
      const cache = index.workerInit();
      const lane = spool.openLane();
      const data: WorkerParts = { cache, lane, logLevel: settings.log_level };
      return { data, transfer: [cache.port, lane.port] };
    },
    listen: settings["accelerator.listen"],
    trustedProxies: settings["accelerator.trusted_proxies"],
    defaultDomain: settings["accelerator.default_domain"] ?? null,
    blobsDir,
    drainGraceMs: settings["accelerator.drain_grace"],
    random,
    registry,
    health,
    log,
    stop,
  });
}

type LinkParts = Omit<AgentParts, "options" | "link"> & { readonly locals: LocalSites };

function openLink(
  options: AgentOptions,
  { registry, db, client, spool, index, sets, viewsets, pool, serving, locals }: LinkParts,
): Link {
  const { settings, version, bootEpoch, health, log, random, now, stop } = options;
  const ports: SteeringPorts = {
    serving,
    documents: db,
    sets,
    viewsets,
    index,
    locals,
    central: {
      botSet: (host, kind, signal) => client.getBotSet(host, kind, signal),
      botSetContent: (blob, signal) => getBotSetContent(client, blob, signal),
    },
  };
  return startLink({
    centralUrl: settings.central_url,
    name16: settings.name16,
    agentVersion: version,
    bootId: bootEpoch,
    edge: edgeFacts(settings.edge),
    client,
    db,
    appliers: createAppliers(ports),
    applySnapshot: (snapshot, signal) => applySnapshot(ports, snapshot, signal),
    onHeadApplied: () => {
      index.setConfirmed();
      health.settle("clears_unconfirmed");
    },
    siteDeleted: async () => {
      log.error("this deployment site was deleted at central; nothing is served any more");
      await serving.publish({ domains: [] }, () => db.put({ domains: { domains: [] } }));
    },
    report: createReporter({ options, pool, serving, spool }),
    registry,
    health,
    log,
    random,
    now,
    stop,
  });
}

/** What was cached before this start waits for central's word that no clear was missed; after so long the settings decide. */
async function confirmOrNot({ options, index, link }: AgentParts): Promise<void> {
  const { settings, health, log, stop } = options;
  if (!(await sleep(settings["link.catch_up_max"], stop)) || link.status().state !== "disconnected")
    return;
  const serves = settings["link.unconfirmed"] === "serve";
  if (serves) index.setUnconfirmedServes();
  const what = serves ? "are served as they are" : "are fetched anew from the origin";
  health.raise(
    "clears_unconfirmed",
    "warning",
    `central has not confirmed that no clear was missed; cached responses ${what}`,
    "Clears given meanwhile take effect when central answers.",
  );
  log.warn(
    { unconfirmed: settings["link.unconfirmed"] },
    "starting without central's word on missed clears",
  );
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
    const here = hostname === "localhost" || hostname === "[::1]" || /^127\./.test(hostname);
    const itself = own.some(
      (listen) => listen.port === asked && (here || listen.host === hostname),
    );
    return itself ? "is a listener of the agent itself" : undefined;
  };
}
