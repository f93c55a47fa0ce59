// What the agent stands on: its database, its client of central, recording and shipping, the cache index, the
// sets. It is opened first and closed last.

import { join } from "node:path";
import { entryUrl } from "../base/entry.ts";
import type { ControlRoutes } from "../base/control-socket.ts";
import { diskSpaceOf } from "../base/disk-space.ts";
import type { Health } from "../base/health.ts";
import type { Log, LogLevels } from "../base/log.ts";
import type { Registry } from "../base/metrics.ts";
import type { Succession } from "../base/succession.ts";
import { Topic } from "../base/topic.ts";
import { repeating, within } from "../base/wait.ts";
import { messageOf } from "../core/faults.ts";
import type { Secret16 } from "../core/ids.ts";
import { notePeriodMs, RunBook } from "./admin/run-book.ts";
import { isNextAwaited, type SocketKeeping } from "./accelerator/pool/visitor-sockets.ts";
import { RatesSeen } from "./accelerator/limits/rates-seen.ts";
import { DecisionLog } from "./bots/decisions/decision-log.ts";
import { SetStore } from "./bots/sets/set-store.ts";
import { SetWatch } from "./bots/sets/set-watch.ts";
import { TableClient } from "./bots/tables/table-client.ts";
import { KeptCounts } from "./bots/unreviewed/kept-counts.ts";
import { keepPeriodMs, UnreviewedBots } from "./bots/unreviewed/unreviewed-bots.ts";
import type { EntryKey } from "./cache/entry.ts";
import { startIndexer, type IndexClient } from "./cache/index/index-client.ts";
import type { IndexMemory } from "./cache/index/opening.ts";
import { IndexLink } from "./cache/worker/index-link.ts";
import type { HostSites } from "./host-sites.ts";
import type { ImageDesk } from "./images/image-desk.ts";
import { agentSchema, openAgentDb, type AgentDb, indexMemory } from "./link/agent-db.ts";
import { CentralClient } from "./link/central-client.ts";
import { openSiteSecret, type SiteSecret } from "./link/site-secret.ts";
import { openImages } from "./picturing.ts";
import { Canary } from "./requests/ship/canary.ts";
import { LateRecords } from "./requests/ship/late-records.ts";
import { openLaneWriter } from "./requests/worker/lane-writer.ts";
import { startShipper, type Shipper } from "./requests/ship/shipper.ts";
import { startSpooler, type SpoolClient } from "./requests/ship/spool-client.ts";
import type { AgentSettings } from "./settings/fields.ts";
import { workersOf, type AgentThreads } from "./threads.ts";
import type { RunningImport } from "../wire/channel.ts";

export type AgentOptions = {
  /** The settings file. */
  readonly config: string;
  readonly settings: AgentSettings;
  readonly secret16: Secret16;
  readonly caPem: string | undefined;
  readonly version: string;
  /** 16 hex characters, random for each start, which name this start's lanes. */
  readonly bootEpoch: string;
  /** systemd's $INVOCATION_ID; undefined without systemd. */
  readonly invocation?: string | undefined;
  readonly health: Health;
  readonly log: Log;
  readonly logLevels: LogLevels;
  readonly now: () => Date;
  readonly random: () => number;
  readonly stop: AbortSignal;
  readonly registry: Registry;
  /** The sites on this host, which are read meanwhile. */
  readonly sites: Promise<HostSites>;
  readonly sockets: SocketKeeping;
  readonly threads: AgentThreads;
  /** What an operator is answered who wants the agent replaced while it serves (hand-over.ts). */
  readonly replace: ControlRoutes;
  /** The agent before, if it hands over to this one. */
  readonly predecessor?: Succession | undefined;
};

/** The parts that nearly every other part takes. */
export type Common = Pick<AgentOptions, "health" | "log" | "stop" | "registry">;

export type Ground = {
  readonly options: AgentOptions;
  readonly common: Common;
  readonly db: AgentDb;
  readonly book: RunBook;
  readonly secret: SiteSecret;
  readonly client: CentralClient;
  readonly spool: SpoolClient;
  readonly shipper: Shipper;
  readonly canary: Canary;
  readonly lateRecords: LateRecords;
  readonly index: IndexClient;
  readonly sets: SetStore;
  readonly setWatch: SetWatch;
  readonly tables: TableClient;
  readonly unreviewed: UnreviewedBots;
  readonly decisions: DecisionLog;
  readonly rates: RatesSeen;
  readonly images: ImageDesk;
  /** The progress of imports. */
  readonly imports: Topic<RunningImport>;
  /** The number of threads that serve visitors. */
  readonly workers: number;
  /** Undefined: this agent succeeds none. */
  readonly before: AgentBefore | undefined;
};

/** The shares of `cache.memory_max` for small files of viewsets and for whole answers; the cache has the rest. */
export const filesMemoryShare = 1 / 4;
export const answersMemoryShare = 1 / 4;

export async function openGround(
  stack: AsyncDisposableStack,
  options: AgentOptions,
): Promise<Ground> {
  const { settings, health, log, random, stop, registry } = options;
  const common = { registry, health, log, stop };
  const db = stack.use(openAgentDb(join(settings.state_dir, "agent.db")));
  tellFound(db, log);
  tellNewer(db, options);
  const book = keepBook(stack, { options, common, db });
  // The last records are shipped after `stop`, so the client must not end with `stop` but when it is
  // disposed.
  const clientEnd = new AbortController();
  const { name16, state_dir: stateDir } = settings;
  const secret = await openSiteSecret({ ...options, name16, stateDir });
  const client = stack.use(openClient(options, secret, clientEnd.signal));
  stack.defer(() => clientEnd.abort());
  const spool = stack.use(await openSpool(options, common));
  const { shipper, canary } = openShipping(stack, { options, common, db, client, spool });
  const lateRecords = new LateRecords();
  if (options.predecessor !== undefined) stack.use(takeLate(options.predecessor, spool));
  const workers = workersOf(settings);
  const index = stack.use(openIndex(options, common, workers, indexMemory(db)));
  if (options.predecessor !== undefined) stack.use(invalidateLate(options.predecessor, index));
  const tables = stack.use(
    new TableClient({
      entry: options.threads.tabler,
      dbPath: db.sqlite.name,
      image: () => db.image(),
      random,
      ...common,
    }),
  );
  const unreviewed = openUnreviewed(stack, { options, common, db });
  const decisions = stack.use(new DecisionLog(common.registry));
  const sets = new SetStore(db.sqlite, (delta) => tables.note(delta));
  // Visitors wait for what is compiled of them.
  if (sets.list().length > 0) options.threads.prepareTabler();
  const setWatch = new SetWatch({ now: options.now, ...common });
  const images = stack.use(openImages(settings, { db, now: options.now, ...common }));
  const before = options.predecessor && agentBefore(options.predecessor, options);
  // What the agent before answers is recorded here. The workers have ended by then.
  stack.defer(async () => before?.gone());
  return {
    options,
    common,
    db,
    book,
    secret,
    client,
    spool,
    shipper,
    canary,
    lateRecords,
    index,
    sets,
    setWatch,
    tables,
    unreviewed,
    decisions,
    rates: new RatesSeen(common.registry),
    images,
    imports: new Topic(),
    workers,
    before,
  };
}

/** Tells operators of a database that a newer release wrote. */
function tellNewer({ newer, sqlite }: AgentDb, { health, log }: AgentOptions): void {
  if (newer === undefined) return;
  const { version, setAside, receipts } = newer;
  const found = `${sqlite.name} has schema version ${version} of a newer release, and this release knows ${agentSchema.version}`;
  if (setAside === undefined) {
    const text = `${found}: by what the newer one says of it, this release may use it, and does`;
    log.warn({ version }, text);
    return health.raise(
      "state_newer",
      "info",
      text,
      "Nothing: the newer release goes on with the same file. What it added is not in force meanwhile.",
    );
  }
  const text = `${found} and may not use it: it was set aside as ${setAside}, and everything is taken from central anew`;
  log.error({ version, set_aside: setAside, receipts_untold: receipts }, text);
  health.raise(
    "state_newer",
    "warning",
    `${text}${receipts === 0 ? "" : `; ${receipts} receipts in it were not told to central`}`,
    "Nothing needs to be put back: the newer release goes on with the file of now. The one that was set aside may be deleted.",
  );
}

/** Keeps for the next process what this one knows of itself. It is closed right before the database. */
function keepBook(
  stack: AsyncDisposableStack,
  { options, common, db }: Pick<Ground, "options" | "common" | "db">,
): RunBook {
  const { invocation, now, settings } = options;
  const stateDir = settings.state_dir;
  const book = stack.use(new RunBook({ documents: db, stateDir, now, invocation, ...common }));
  const onError = (error: unknown): void =>
    common.log.error({ err: error }, "noting what the next start is to know failed");
  stack.use(repeating(notePeriodMs, async () => book.note(), { onError }));
  return book;
}

/** Tells operators what is unusual about the database. Of a state directory that was used elsewhere the cache says for itself that it starts empty. */
function tellFound({ setAside, moved, instanceId, alone }: AgentDb, log: Log): void {
  if (setAside !== undefined)
    log.error(
      { set_aside: setAside },
      "agent.db was damaged and set aside; the state is fetched again",
    );
  if (moved !== undefined)
    log.warn(
      { instance: instanceId, instance_before: moved.before },
      `${moved.reason}: for central this is another instance from now on, and its state is taken anew`,
    );
  if (alone !== undefined)
    log.warn(
      { reason: alone },
      "the disk of agent.db has no room: the file is opened alone until the next start, and bot sets are compiled from a copy in memory",
    );
}

function openClient(
  { settings, caPem, log }: AgentOptions,
  secret: SiteSecret,
  stop: AbortSignal,
): CentralClient {
  const { central_url: centralUrl, name16 } = settings;
  const onSecretFailure = (error: unknown): void =>
    log.error({ err: error }, "the new secret16 could not be taken; it comes again");
  return new CentralClient({ centralUrl, caPem, name16, secret, onSecretFailure, stop });
}

const fsyncBytes = 262_144; // With 5 ms, syncs are due by time up to 52 MB/s of records, and by bytes beyond.

async function openSpool(
  { settings, bootEpoch, threads }: AgentOptions,
  { registry, health, log }: Common,
): Promise<SpoolClient> {
  return startSpooler({
    entry: threads.spooler,
    stateDir: settings.state_dir,
    spoolMax: settings["spool.max"],
    whenFull: settings["spool.when_full"],
    durability: settings["spool.durability"],
    name16: settings.name16,
    fsync: { intervalMs: settings["spool.fsync_interval"], bytes: fsyncBytes },
    bootEpoch,
    registry,
    health,
    log,
  });
}

/**
 * Opens canary and shipper. The canary's lane is closed before the last flush, so that the flush ships its
 * records too.
 */
function openShipping(
  stack: AsyncDisposableStack,
  {
    options,
    common,
    db: { instanceId },
    client,
    spool,
  }: Pick<Ground, "options" | "common" | "db" | "client" | "spool">,
): Pick<Ground, "shipper" | "canary"> {
  const { settings, now, random } = options;
  const { init, port } = spool.openLane();
  const intervalMs = settings["logs.canary_interval"];
  const canary = new Canary({ lane: openLaneWriter(init, port), intervalMs, now, ...common });
  const shipper = stack.use(
    startShipper({
      spool,
      post: (batch, signal) => client.postRequestLogs({ ...batch, instanceId }, signal),
      onCanary: (at) => canary.committed(at),
      now,
      random,
      ...common,
    }),
  );
  // Visitors wait for the next start, and it sends what is spooled.
  stack.defer(async () => {
    if (!common.stop.aborted || !(await isNextAwaited(options.sockets))) return;
    shipper.leave();
    common.log.info({}, "the next start sends the records that are left");
  });
  return { shipper, canary: stack.use(canary) };
}

/** The lane of what the agent before still answers. */
function takeLate(predecessor: Succession, spool: SpoolClient): AsyncDisposable {
  const { init, port } = spool.openLane();
  const lane = openLaneWriter(init, port);
  predecessor.followRecords((line) => lane.accept(line));
  void predecessor.ended.then(async () => lane.close());
  return { [Symbol.asyncDispose]: async () => lane.close() };
}

/** What the agent before still answers may change what is stored here. */
function invalidateLate(predecessor: Succession, index: IndexClient): Disposable {
  const link = new IndexLink(index.workerInit().port, () => {});
  predecessor.followInvalidations(({ no, key }) => {
    // The agent before says it of a worker's.
    link.invalidate(key as EntryKey).then(
      () => predecessor.invalidated(no),
      (error: unknown) => predecessor.invalidated(no, messageOf(error)),
    );
  });
  return link;
}

/** What the agent before gathers of its workers' last lines. */
const lastLinesMs = 5_000;

/** The agent before, for as long as it may still answer. */
export type AgentBefore = {
  /** Resolves when it has ended, or has had its time behind a stop of this one. */
  readonly gone: () => Promise<void>;
};

/** The agent before has the same grace, and began to drain earlier. */
function agentBefore(
  { ended }: Succession,
  { settings, stop }: Pick<AgentOptions, "settings" | "stop">,
): AgentBefore {
  let stoppedMs: number | undefined;
  const note = (): void => void (stoppedMs = performance.now());
  stop.addEventListener("abort", note, { once: true });
  return {
    gone: async () => {
      const goneMs = performance.now() - (stoppedMs ?? performance.now());
      const mostMs = settings["accelerator.drain_grace"] + lastLinesMs;
      await within(ended, Math.max(0, mostMs - goneMs));
    },
  };
}

/** Opens the counts of unreviewed bots, which are kept until the last worker has ended, those of the agent before included. */
function openUnreviewed(
  stack: AsyncDisposableStack,
  { options, common, db }: Pick<Ground, "options" | "common" | "db">,
): UnreviewedBots {
  const { settings, bootEpoch, predecessor } = options;
  const { registry, log } = common;
  const free = (): number => diskSpaceOf(settings.state_dir)?.free ?? Infinity;
  const kept = new KeptCounts(db, db.instanceId, free);
  const unreviewed = stack.use(new UnreviewedBots({ bootId: bootEpoch, kept, registry, log }));
  predecessor?.followCounts((counts) => unreviewed.add(counts));
  const onError = (error: unknown): void =>
    log.error({ err: error }, "keeping the counts of unreviewed bots failed");
  // Workers drain behind `stop`.
  stack.use(repeating(keepPeriodMs, () => unreviewed.keep(), { onError }));
  return unreviewed;
}

function openIndex(
  { settings, threads }: AgentOptions,
  common: Common,
  workers: number,
  memory: IndexMemory,
): IndexClient {
  return startIndexer({
    entry: threads.indexer,
    matcherEntry: entryUrl(import.meta.url, "./matcher"),
    stateDir: settings.state_dir,
    diskMax: settings["cache.disk_max"],
    freeMin: settings["cache.disk_free_min"],
    memoryMax: settings["cache.memory_max"] * (1 - filesMemoryShare - answersMemoryShare),
    workers,
    memory,
    ...common,
  });
}
