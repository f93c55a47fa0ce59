// Opens what serves: viewsets and the sites on this host, the workers, and the state that they serve, which
// begins as it was committed before.

import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ensureDirectory } from "../base/durable-file.ts";
import type { Log } from "../base/log.ts";
import { Topic } from "../base/topic.ts";
import { messageOf } from "../core/faults.ts";
import type { OwnListener } from "../core/serving/own-listeners.ts";
import type { ServingState } from "../core/serving/serving-state.ts";
import { OriginChecks } from "./accelerator/origin/origin-checks.ts";
import type { BadBlob } from "./accelerator/pool/worker-messages.ts";
import { openWorkers, type PoolBodies, type WorkerPool } from "./accelerator/pool/workers.ts";
import { openKeptCertificates, openStapler, type KeptCertificates } from "./certificates.ts";
import { openFilesCounter } from "./admin/host-watch.ts";
import { answersMemoryShare, filesMemoryShare, type Ground } from "./ground.ts";
import { listenersOf, ownListenerGuard } from "./own-listeners.ts";
import { openReleases, type Releases } from "./releases.ts";
import type { AgentSettings } from "./settings/fields.ts";
import { PurgeQueue } from "./link/purge-queue.ts";
import { LateDrops } from "./steering/late-drops.ts";
import { Purges } from "./steering/purges.ts";
import { ReleaseBooks } from "./steering/release-books.ts";
import { ReleaseWatch } from "./steering/release-watch.ts";
import { healViewset, restoreState } from "./steering/restore.ts";
import { QueryRules } from "./steering/query-rules.ts";
import { Serving } from "./steering/serving.ts";
import type { LocalSites } from "./viewset/local-sites.ts";
import { TableMemory } from "./viewset/table-memory.ts";
import { openViewsets, type Viewsets } from "./viewset/viewsets.ts";
import type { WorkerParts } from "./worker.ts";

export type ServedParts = {
  readonly viewsets: Viewsets;
  readonly locals: LocalSites;
  readonly pool: WorkerPool;
  readonly checks: OriginChecks;
  readonly serving: Serving;
  readonly releases: Releases;
  readonly certificates: KeptCertificates;
  readonly lateDrops: LateDrops;
  /** Resolves when everything that was committed is whole again, or when stopped. */
  readonly healing: Promise<unknown>;
};

export async function openServing(
  stack: AsyncDisposableStack,
  ground: Ground,
): Promise<ServedParts> {
  const { options, common, db, client, sets, tables, imports } = ground;
  const { settings, log, random } = options;
  const ownListeners = listenersOf(settings);
  const backendRules = { backendGuard: ownListenerGuard(ownListeners) };
  const books = new ReleaseBooks(db, options.version);
  const tableMemory = new TableMemory(() => performance.now());
  const viewsets = stack.use(
    await openViewsets({
      stateDir: settings.state_dir,
      central: client,
      sites: settings.sites,
      backendRules,
      releases: books,
      diskMax: settings["viewset.disk_max"],
      spareBytes: async () => cachedBytes(ground),
      tables: tableMemory,
      onProgress: (progress) => imports.tell(progress),
      ...common,
    }),
  );
  const { locals, linked, changes } = stack.use(await options.sites);
  const checks = stack.use(new OriginChecks({ guard: { ownListeners }, random, ...common }));
  const badBlobs = new Topic<BadBlob>();
  const purges = openPurges(stack, ground, () => serving);
  const poolParts = { blobsDir: viewsets.blobsDir, ownListeners, checks, badBlobs, purges };
  const pool = stack.use(await openPool(ground, poolParts));
  const stapler = openStapler(stack, ground, pool);
  const onServed = (state: ServingState): void => {
    checks.follow(state);
    stapler?.follow(state.certificates);
  };
  const onTableLeft = (table: SharedArrayBuffer): void => tableMemory.giveBack(table);
  const queryRules = new QueryRules({ documents: db, index: ground.index, log });
  const shared = { documents: db, linked, sets, tables, locals, pool, queryRules };
  const { now } = options;
  const serving = new Serving({ ...shared, now, onServed, onTableLeft });
  stack.use(changes.follow((domain) => republish(domain, serving, log)));
  const watch = new ReleaseWatch(common);
  const restored = { serving, documents: db, viewsets, watch, random, ...common };
  const certificates = await openKeptCertificates(stack, ground, { serving, pool });
  const torn = await restoreState(restored);
  // Domains that are to be dropped are marked unsure before the first visitor comes.
  const lateDrops = stack.use(
    new LateDrops({ documents: db, index: ground.index, now, random, log, health: options.health }),
  );
  await pool.start(); // The workers start only now, when there is a committed state to serve.
  const viewsetsHealing = torn.map((domain) => healViewset(domain, restored));
  const healing = Promise.all([...viewsetsHealing, certificates.changes.heal()]);
  const releaseParts = { books, viewsets, pool, serving, watch, torn, badBlobs };
  const releases = openReleases(stack, ground, releaseParts);
  return { viewsets, locals, pool, checks, serving, releases, certificates, lateDrops, healing };
}

type PoolParts = {
  readonly blobsDir: string;
  readonly ownListeners: readonly OwnListener[];
  readonly checks: OriginChecks;
  readonly badBlobs: Topic<BadBlob>;
  readonly purges: Purges;
};

async function openPool(
  ground: Ground,
  { blobsDir, ownListeners, checks, badBlobs, purges }: PoolParts,
): Promise<WorkerPool> {
  const { options, common, workers, index, spool, lateRecords, unreviewed: bots } = ground;
  const { settings, random, logLevels } = options;
  const { decisions: log, rates, images } = ground;
  return openWorkers({
    count: workers,
    sockets: { ...options.sockets, before: ground.before },
    entry: options.threads.worker,
    openParts: () => {
      const cache = index.workerInit();
      const lane = spool.openLane();
      const unreviewed = bots.openWorker();
      const decisions = log.openWorker(workers);
      const logLevel = logLevels.openThread();
      const data: WorkerParts = {
        cache,
        lane,
        lateRecords: lateRecords.openWorker(),
        unreviewed,
        decisions,
        logLevel,
        ownListeners,
        originChecks: checks.openWorker(),
        purges: purges.openWorker(),
        rates: rates.memory,
        images: images.openWorker(),
      };
      const { lateRecords: late, originChecks } = data;
      const ports = [cache.port, lane.port, late, unreviewed, decisions.port, data.images];
      return { data, transfer: [...ports, logLevel.port, originChecks, data.purges] };
    },
    listen: settings["accelerator.listen"],
    tlsListen: settings["accelerator.tls_listen"] ?? null,
    ticketFile: join(settings.state_dir, "vault", "tickets.json"),
    proxies: {
      trusted: settings["accelerator.trusted_proxies"],
      forwardedHeader: settings["accelerator.forwarded_header"],
      proxyProtocol: settings["accelerator.proxy_protocol"],
    },
    defaultDomain: settings["accelerator.default_domain"] ?? null,
    blobsDir,
    filesMemoryMax: settings["cache.memory_max"] * filesMemoryShare,
    answersMemoryMax: settings["cache.memory_max"] * answersMemoryShare,
    upgrades: {
      openMax: settings["accelerator.upgrades_max"],
      idleMs: settings["accelerator.upgrade_idle"],
    },
    requestBodies: bodyRules(settings, await emptyBodies(settings.state_dir)),
    originShares: {
      requestsMax: settings["accelerator.origin_requests_max"],
      waitingMax: settings["accelerator.origin_waiting_max"],
    },
    visitors: {
      connectionsMax: settings["accelerator.connections_per_address"],
      requestsMax: settings["accelerator.requests_per_address"],
    },
    connectionsMax: connectionsMaxOf(openFilesCounter()()?.max),
    usesLane: settings["accelerator.lane"],
    onBadBlob: (blob) => badBlobs.tell(blob),
    drainGraceMs: settings["accelerator.drain_grace"],
    random,
    ...common,
  });
}

/** For databases, threads, central, origins, operators and Prometheus, which must get in when visitors have taken all that they may. */
const descriptorsOfOurs = { least: 256, share: 1 / 10 };
const connectionsLeast = 64;

function connectionsMaxOf(descriptors = Infinity): number {
  const { least, share } = descriptorsOfOurs;
  const left = descriptors - Math.max(least, descriptors * share);
  return Math.max(connectionsLeast, Math.floor(left));
}

/** A cache that is closed, as on a full disk, has given up what it had. */
async function cachedBytes({ index }: Ground): Promise<number> {
  return index.stats().then(
    ({ bytes }) => bytes,
    () => 0,
  );
}

/** Opens what carries purge requests out and tells central of them. Purges that were not told go on first. */
function openPurges(
  stack: AsyncDisposableStack,
  { options, common, db, client, index }: Ground,
  serving: () => Serving,
): Purges {
  const { instanceId } = db;
  const { random } = options;
  const queue = stack.use(new PurgeQueue({ db, instanceId, client, random, ...common }));
  return stack.use(new Purges({ index, serving, queue, ...common }));
}

function bodyRules(settings: AgentSettings, directory: string): PoolBodies {
  return {
    memoryMax: settings["accelerator.body_memory_max"],
    diskMax: settings["accelerator.body_disk_max"],
    directory,
    idleMs: settings["accelerator.body_idle"],
    rateMin: settings["accelerator.body_rate_min"],
  };
}

/** The folder for bodies of requests. What a crash left there are files of nobody. The folder itself stays: on a full disk no other could be made. */
async function emptyBodies(stateDir: string): Promise<string> {
  const directory = join(stateDir, "bodies");
  await ensureDirectory(directory);
  const left = await readdir(directory);
  await Promise.all(
    left.map((name) => rm(join(directory, name), { recursive: true, force: true })),
  );
  return directory;
}

function republish(domain: string, serving: Serving, log: Log): void {
  serving.publish().then(
    () => log.info({ domain }, "the devlove on this host changed and is served"),
    (error: unknown) =>
      log.error(
        { domain, error: messageOf(error) },
        "the changed devlove on this host could not be published",
      ),
  );
}
