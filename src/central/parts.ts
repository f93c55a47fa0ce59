// Central's parts, opened in order and closed in reverse: store and blobs, log threads, channels, the two
// APIs, the listener, the jobs, the control socket.

import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { startControlSocket, type ControlRoutes } from "../base/control-socket.ts";
import type { Health } from "../base/health.ts";
import type { KeptListener } from "../base/kept-listener.ts";
import type { Log } from "../base/log.ts";
import { Registry } from "../base/metrics.ts";
import { openPatternCheck } from "../base/pattern-check.ts";
import type { Sealer } from "../base/seal.ts";
import { type AccelError } from "../core/faults.ts";
import { failureFacts } from "./store/engine/postgres-faults.ts";
import { ClientAddresses } from "../core/http/client-address.ts";
import { fieldsOfRaw } from "../core/http/http-fields.ts";
import { reportIntervalMs } from "../wire/channel.ts";
import { startAcme } from "./acme.ts";
import { createAgentApi, type AgentApi } from "./agents/agent-api.ts";
import { Hub } from "./agents/hub.ts";
import { createChangeBus, type ChangeBus } from "./agents/changes.ts";
import { createCanaryAges } from "./agents/log-canaries.ts";
import type { LogEngine } from "./agents/log-engine.ts";
import { findRequest, findRequests } from "./agents/log-finder.ts";
import { readLogs } from "./agents/log-reader.ts";
import { createAgentMetrics, type AgentMetrics } from "./agents/metrics.ts";
import { openPurgeOrders } from "./agents/purge-route.ts";
import { createRateLimit } from "./agents/rate-limit.ts";
import { createLocalWakeBus, SharedWakes, type WakeBus } from "./agents/wake.ts";
import { auditRoute } from "./api/audit-route.ts";
import { createCustomerApi } from "./api/customer-api.ts";
import { EventStreams } from "./api/event-streams.ts";
import { operatorRoutes } from "./api/operator-routes.ts";
import { operatorLogRoutes } from "./api/operator-logs.ts";
import { operatorRolloutRoutes } from "./api/operator-rollouts.ts";
import { operatorSiteRoutes } from "./api/operator-sites.ts";
import { entryUrl } from "../base/entry.ts";
import type { Cluster } from "./cluster/cluster.ts";
import type { CentralJob } from "./cluster/membership.ts";
import { createBackupHold } from "./backup-hold.ts";
import { startFront } from "./front.ts";
import { startAnalyticsFold } from "./jobs/analytics-fold.ts";
import { startBlobCollection } from "./jobs/blob-collection.ts";
import { startBotImports } from "./jobs/bot-imports.ts";
import { startBotSources } from "./jobs/bot-sources.ts";
import { startClassWarnings } from "./jobs/class-warnings.ts";
import { startFirstKeys } from "./jobs/first-keys.ts";
import { startFleetActivations, type FleetActivationsDeps } from "./jobs/fleet-activations.ts";
import { startImportDeadlines } from "./jobs/import-deadlines.ts";
import { startLossWarning } from "./jobs/loss-warning.ts";
import { startRetention } from "./jobs/retention.ts";
import { startRollouts } from "./jobs/rollouts.ts";
import { createMailPages } from "./mail-pages.ts";
import { alertRules, openNotices, type Notices } from "./notices.ts";
import { Judge } from "./judging/judge.ts";
import { openObjects } from "./objects-opening.ts";
import { centralsOf, isOurs, openOthers, toldOf, waitsEnd } from "./others.ts";
import { openLogs } from "./request-logs.ts";
import { readAuthority } from "./settings/authority.ts";
import { backendRules, keyFileOf, type CentralSettings } from "./settings/fields.ts";
import { openAgentStore } from "./store/journal/agent-store.ts";
import { dropAudit } from "./store/people/audit.ts";
import { BotImports } from "./store/bots/bot-import.ts";
import { hasFleetActivations, stepFleetActivations } from "./store/content/fleet-activations.ts";
import { failLeftOver } from "./store/content/import-without.ts";
import { failOverdueImports } from "./store/content/import-deadlines.ts";
import { MarkJournal, type MarkJournalDeps } from "./store/bots/mark-journal.ts";
import { collectBlobs } from "./store/content/blob-collection.ts";
import { CustomerStore } from "./store/engine/customer-store.ts";
import type { Store } from "./store/engine/database.ts";
import { dropExpiredAgentTokens, dropIdempotencyKeys } from "./store/engine/expiry.ts";
import type { ObjectsSight, ObjectStore } from "./store/objects/object-store.ts";
import { dropEnrolments } from "./store/journal/enrolments.ts";
import { dropEndedTokens } from "./store/people/tokens.ts";
import { siteNames } from "./store/journal/sites.ts";
import { openStoreKey } from "./store/engine/store-key.ts";
import { dropUnreviewed } from "./store/bots/unreviewed-counting.ts";
import { centralStatus, tellWarnings, unreadiness } from "./status.ts";
import { openCentralStore, type CentralStore, type StoreOpening } from "./store-opening.ts";
import type { Live, LogReader } from "./api/deps.ts";

export type CentralOptions = Pick<StoreOpening, "cut"> & {
  readonly settings: CentralSettings;
  readonly version: string;
  readonly log: Log;
  readonly health: Health;
  readonly now: () => Date;
  readonly stop: AbortSignal;
  /** Aborted when requests that still wait at the end must be answered. */
  readonly late: AbortController;
  /** Where it is served. */
  readonly door: KeptListener;
  /** Called when central must stop by itself, with what it is to end with; at most once. */
  readonly fail: (error: AccelError) => void;
  /** Called when all of central must be closed and opened anew, since its store is another one; at most once. */
  readonly reopen: (error: AccelError) => void;
};

export type Central = AsyncDisposable & {
  readonly port: number;
  /** Throws if a part does not answer in time. */
  readonly probe: (timeoutMs: number) => Promise<void>;
};

const numbersTimeoutMs = 10_000;

/** What all parts share. */
type Ground = CentralOptions &
  ObjectStore & {
    readonly registry: Registry;
    readonly store: Store;
    readonly isStoreShared: boolean;
    readonly openReader: CentralStore["openReader"];
    readonly onJournals: CentralStore["onJournals"];
    readonly objects: ObjectsSight;
    readonly thread: LogEngine;
    readonly judge: Judge;
    readonly metrics: AgentMetrics;
    /** When central started, ISO 8601. */
    readonly started: string;
    /** Hints of what changes. */
    readonly changes: ChangeBus;
    /** The other centrals at the store; undefined where this is the only one. */
    readonly others: Cluster | undefined;
  };

/** Opens central. The caller has locked the state directory. */
export async function openCentral(given: CentralOptions): Promise<Central> {
  const { settings, now, health } = given;
  await using stack = new AsyncDisposableStack();
  const registry = new Registry();
  const opened = stack.use(await openCentralStore({ ...given, registry }));
  const { store, log } = opened;
  const options = { ...given, log };
  const sealer = await openStoreKey(store, keyFileOf(settings));
  const objects = stack.use(await openObjects({ ...options, store, registry }));
  const { blobs, packages } = objects;
  const metrics = createAgentMetrics(registry);
  const thread = stack.use(await openLogs({ ...options, metrics }));
  const judge = stack.use(new Judge({ ...options, entry: entryUrl(import.meta.url, "./judge") }));
  const started = now().toISOString();
  const others = await openOthers({ ...options, ...opened, registry, sealer, started });
  if (others !== undefined) stack.use(others);
  const changes = createChangeBus(others?.bus);
  const { openReader, onJournals, isShared: isStoreShared } = opened;
  const ways = { store, openReader, onJournals, isStoreShared, others };
  const files = { blobs, packages, objects };
  const shared = { registry, metrics, ...ways, ...files, thread, judge, started, changes };
  const ground: Ground = { ...options, ...shared };
  const bus = openWakes(ground, stack);
  const customerStore = await openCustomerStore(ground, bus, sealer, stack);
  const { agents, hub } = await openAgentsSide(ground, bus, { sealer, customerStore }, stack);
  const notices = stack.use(await openNotices({ ...ground, sealer, customers: customerStore }));
  const customers = openCustomersSide(ground, bus, hub, customerStore, notices, stack);
  const listener = stack.use(
    await startFront({
      ...ground,
      listen: settings.listen,
      customers,
      mailPages: createMailPages({
        ...ground,
        pages: notices.pages,
        trustedProxies: settings.trusted_proxies,
        randomBytes,
      }),
      agents,
      beforeScrape: beforeScrapes(ground),
      unreadiness: () => unreadiness(ground),
      isLone: () => others?.lone.isLone === true,
      warnings: () => health.list(),
      isHttps: settings.base_url.startsWith("https:"),
    }),
  );
  // Closed before the listener, whose closing waits for every connection.
  stack.defer(async () => hub[Symbol.asyncDispose]());
  startJobs(stack, ground, followFleets(ground, customerStore, bus, hub));
  const ours = (job: CentralJob) => () => isOurs(others, job);
  const customerGround = { ...ground, customers: customerStore };
  stack.use(startRollouts({ ...customerGround, isOurs: ours("rollouts") }));
  stack.use(startFirstKeys({ ...customerGround, isOurs: ours("first-keys") }));
  stack.use(startClassWarnings(ground));
  if (isStoreShared) stack.use(startLossWarning(ground));
  stack.use(startAcme({ ...customerGround, bus, hub, isOurs: ours("certificate-orders") }));
  stack.use(startCollecting(ground));
  const status = async (): Promise<unknown> => centralStatus(ground, hub, listener.port);
  const imports = startBotLists(ground, customerStore, bus, stack);
  const routes = { status, ...operatorsRoutes(ground, customerStore) };
  stack.use(
    await startControlSocket(join(settings.state_dir, "control.sock"), routes, imports.uploads),
  );
  const owned = stack.move();
  return {
    port: listener.port,
    probe: async (timeoutMs) => thread.probe(timeoutMs),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

function openWakes(ground: Ground, stack: AsyncDisposableStack): WakeBus {
  const { others } = ground;
  return others === undefined
    ? createLocalWakeBus()
    : stack.use(new SharedWakes({ ...ground, ...others }));
}

function startCollecting(ground: Ground): AsyncDisposable {
  const collecting = { ...ground, randomBytes };
  return startBlobCollection({
    ...ground,
    collect: async (at, ended) => collectBlobs(collecting, at, ended),
    isOurs: () => isOurs(ground.others, "blob-collection"),
  });
}

/** Starts what takes in lists of bots: from operators' files, and from URLs. */
function startBotLists(
  ground: Ground,
  customers: CustomerStore,
  bus: WakeBus,
  stack: AsyncDisposableStack,
): ReturnType<typeof startBotImports> {
  const { settings, changes } = ground;
  const wake = (ids: readonly number[]): void => bus.publish(ids);
  stack.use(
    startBotSources({
      ...ground,
      customers,
      wake,
      onAttempt: (customerId, main) =>
        changes.publish({ kind: "customer", customerId, topics: ["bots"], domains: [main] }),
      elementsMax: settings["limits.bot_elements"],
      mayBePrivate: settings["bots.private_sources"],
      random: Math.random,
    }),
  );
  const imports = new BotImports(customers, wake);
  return stack.use(
    startBotImports({
      ...ground,
      imports: {
        run: async (...given) => imports.run(...given),
        sweep: async (stop) => {
          if (isOurs(ground.others, "bot-sweep")) await imports.sweep(stop);
        },
      },
    }),
  );
}

/** Returns what sets the metrics that are only known when they are asked for. */
function beforeScrapes(ground: Ground): () => Promise<void> {
  const { log } = ground;
  const names = async (): ReturnType<typeof siteNames> => siteNames(ground.store);
  const onError = (error: unknown): void =>
    log.warn(failureFacts(error), "the ages of canaries are not known");
  const setAges = createCanaryAges({ ...ground, names, onError });
  const setWarnings = tellWarnings(ground.health, ground.registry);
  return async () => {
    await setAges();
    // What was found out meanwhile is told.
    setWarnings();
  };
}

async function openAgentsSide(
  ground: Ground,
  bus: WakeBus,
  { sealer, customerStore }: { readonly sealer: Sealer; readonly customerStore: CustomerStore },
  stack: AsyncDisposableStack,
): Promise<{ readonly agents: AgentApi; readonly hub: Hub }> {
  const { settings, metrics } = ground;
  const monotonicMs = (): number => performance.now();
  const reader = stack.use(ground.openReader());
  const rules = { backendRules: backendRules(settings), alertRules: alertRules(settings) };
  const store = await openAgentStore({ ...ground, reader, sealer, ...rules });
  const hub = stack.use(new Hub({ ...ground, store, bus, metrics, monotonicMs }));
  hub.expect(await store.seenWithin(2 * reportIntervalMs));
  const clients = new ClientAddresses(settings.trusted_proxies, "x-forwarded-for");
  const addressOf = ({ socket, rawHeaders }: IncomingMessage): string => {
    const peer = clients.ofPeer(socket.remoteAddress);
    return peer === undefined ? "unknown" : clients.ofRequest(peer, fieldsOfRaw(rawHeaders)).text;
  };
  const purges = stack.use(
    openPurgeOrders({ transactions: customerStore, bus, metrics, monotonicMs }),
  );
  const agents = createAgentApi({
    ...ground,
    store,
    transactions: customerStore,
    authority: () => readAuthority(settings.ca_file),
    bus,
    hub,
    purges,
    monotonicMs,
    addressOf,
    centrals: () => centralsOf(ground.others),
    told: () => toldOf(ground.others),
  });
  return { agents, hub };
}

/**
 * Opens the store together with what tells the journals of changed sets, which ends after all who change
 * them.
 */
async function openCustomerStore(
  { store, now, log, onJournals, others }: Ground,
  bus: WakeBus,
  sealer: Sealer,
  stack: AsyncDisposableStack,
): Promise<CustomerStore> {
  const transact: MarkJournalDeps["transact"] = async (action) =>
    (await customers.run(async (work) => ({ keep: true, value: await action(work) }))).appended;
  const wake = (ids: readonly number[]): void => bus.publish(ids);
  const marks = stack.use(new MarkJournal({ store, transact, wake, log }));
  const told = onJournals === undefined ? {} : { onJournals };
  const customers = new CustomerStore({ store, sealer, now, randomBytes, marks, ...told });
  await marks.open();
  // What a central that died had not told the journals yet is told by those that are left, whoever comes first.
  others?.membership.onGone(() => void marks.takeUp());
  return customers;
}

function openCustomersSide(
  ground: Ground,
  bus: WakeBus,
  hub: Hub,
  store: CustomerStore,
  { channelTests }: Pick<Notices, "channelTests">,
  stack: AsyncDisposableStack,
): ReturnType<typeof createCustomerApi> {
  const { settings, blobs, packages, objects, thread, judge, changes } = ground;
  const monotonicMs = (): number => performance.now();
  const events = stack.use(
    new EventStreams({ ...ground, store, wakes: bus, monotonicMs, random: Math.random }),
  );
  return createCustomerApi({
    ...ground,
    stop: waitsEnd(ground.stop, ground.others),
    store,
    randomBytes,
    rateLimit: (limit) => createRateLimit(limit, monotonicMs, () => centralsOf(ground.others)),
    ports: {
      changes,
      events,
      journal: { wake: (ids) => bus.publish(ids) },
      live: liveOf(ground, hub),
      receipts: hub,
      logs: logsOf(thread),
      analytics: { read: async (query) => thread.numbers(query) },
      channelTests,
      blobs,
      objects,
      judge,
      packages,
      patterns: stack.use(openPatternCheck()),
    },
    settings: {
      trustedProxies: settings.trusted_proxies,
      trialsPerAddress: settings["limits.trials_per_address"],
      trialsTotal: settings["limits.trials_total"],
      marksPerSecond: settings["limits.marks_per_second"],
      marksBurst: settings["limits.marks_burst"],
      botElements: settings["limits.bot_elements"],
      packages: {
        baseUrl: settings.base_url,
        sizeMax: settings["package.size_max"],
        bootstrapperUrl: settings["package.bootstrapper_download_url"],
        versions: settings["package.versions"],
        images: settings["package.images"],
      },
      recoveriesPerAddress: settings["limits.recoveries_per_address"],
      sendsMail: settings["mail.server"] !== undefined,
      privateHooksAllowed: settings["chat.private_hooks"],
      privateSourcesAllowed: settings["bots.private_sources"],
      authority: () => readAuthority(settings.ca_file),
      devlove: backendRules(settings),
    },
  });
}

function logsOf(thread: Ground["thread"]): LogReader {
  return {
    read: async (query) => readLogs(thread, query),
    find: async (query, gone) => findRequests(thread, query, gone),
    record: async (query) => findRequest(thread, query),
  };
}

/** Since when agents can have connected: with several centrals, since the first of those that are there. */
function heardSinceMs({ others, started }: Ground): number {
  return others?.membership.sinceMs ?? Date.parse(started);
}

function liveOf(ground: Ground, hub: Hub): Live {
  return {
    get sinceMs() {
      return heardSinceMs(ground);
    },
    isLive: (id, instance) => hub.isLive(id, instance),
    isExpected: (id, instance) => hub.isExpected(id, instance),
    isInTouch: (id, instance) => hub.isInTouch(id, instance),
    silentMs: (id, instance) => hub.silentMs(id, instance),
    importProgress: (importId) => hub.importProgress(importId),
    closeSite: (id) => hub.closeSite(id),
    dryRun: async (id, question, deadlineMs, signal) => {
      const answers = await hub.ask(id, question, deadlineMs, signal);
      return answers.map(({ instanceId, answer: result }) => ({ instanceId, result }));
    },
  };
}

function followFleets(
  ground: Ground,
  customers: CustomerStore,
  bus: WakeBus,
  hub: Hub,
): FleetActivationsDeps {
  const { store, log } = ground;
  const inTouch = {
    isLive: (id: number, instance: string) => hub.isInTouch(id, instance),
    get sinceMs() {
      return heardSinceMs(ground);
    },
  };
  return {
    areAny: async () => isOurs(ground.others, "fleet-activations") && hasFleetActivations(store),
    step: async () => {
      const { value, appended } = await customers.run(async (work) => ({
        keep: true,
        value: await stepFleetActivations(work, inTouch),
      }));
      bus.publish(appended);
      return value;
    },
    nextReceipt: async (signal) => hub.next(signal),
    onEnded: () => hub.receiptsStored([]),
    log,
  };
}

/** What operators' commands change and ask of the store. */
function operatorsRoutes(
  { settings, thread, stop, blobs }: Ground,
  store: CustomerStore,
): ControlRoutes {
  return {
    "backup-hold": createBackupHold(blobs, stop),
    ...operatorRoutes({ store, randomBytes }),
    ...operatorSiteRoutes({ store, settings }),
    ...operatorRolloutRoutes(store),
    ...operatorLogRoutes({ store, thread }),
    ...auditRoute({ store, stop }),
  };
}

function startJobs(
  stack: AsyncDisposableStack,
  ground: Ground,
  fleets: FleetActivationsDeps,
): void {
  stack.use(startFleetActivations(fleets));
  const { settings, store, thread, now, log } = ground;
  const retention = {
    ageMs: settings["logs.retention_age"],
    bytesMax: settings["logs.retention_size"],
  };
  const audited = (at: Date): Date => new Date(at.getTime() - settings["audit.retention_age"]);
  // The request logs are this central's own.
  const ofStore = async (drop: () => Promise<number>): Promise<number> =>
    isOurs(ground.others, "retention") ? drop() : 0;
  const retaining = startRetention({
    dropIdempotencyKeys: async (at) => ofStore(async () => dropIdempotencyKeys(store, at)),
    dropTokens: async (at) =>
      ofStore(async () => dropEndedTokens(store, audited(at).toISOString())),
    dropAgentTokens: async (at) => ofStore(async () => dropExpiredAgentTokens(store, at)),
    dropEnrolments: async (at) => ofStore(async () => dropEnrolments(store, at)),
    dropUnreviewed: async (at) => ofStore(async () => dropUnreviewed(store, at)),
    dropAudit: async (at) => ofStore(async () => dropAudit(store, audited(at))),
    dropLogs: async (at) => thread.retain(retention, at.getTime()),
    now,
    log,
  });
  stack.use(retaining);
  stack.use(
    startAnalyticsFold({
      fold: async (at, stop) => thread.fold(at.getTime(), stop),
      bytes: async () => thread.numbersBytes(numbersTimeoutMs),
      ...ground,
    }),
  );
  const failOverdue = async (at: Date): Promise<number> =>
    isOurs(ground.others, "import-deadlines")
      ? (await failOverdueImports(store, at)) + (await failLeftOver(store, at))
      : 0;
  stack.use(startImportDeadlines({ failOverdue, now, log }));
}
