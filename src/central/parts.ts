// Central's parts, opened in order and closed in reverse: store and blobs, log threads, channels, the two
// APIs, the listener, the jobs, the control socket.

import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { startControlSocket, type ControlRoutes } from "../base/control-socket.ts";
import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import { Registry } from "../base/metrics.ts";
import { openPatternCheck } from "../base/pattern-check.ts";
import type { Sealer } from "../base/seal.ts";
import { messageOf, type AccelError } from "../core/faults.ts";
import { ClientAddresses } from "../core/http/client-address.ts";
import { fieldsOfRaw } from "../core/http/http-fields.ts";
import { startAcme } from "./acme.ts";
import { createAgentApi, type AgentApi } from "./agents/agent-api.ts";
import { Hub } from "./agents/hub.ts";
import type { AnalyticsPlace } from "./agents/analytics.ts";
import { createChangeBus, type ChangeBus } from "./agents/changes.ts";
import { createCanaryAges } from "./agents/log-canaries.ts";
import type { LogThread } from "./agents/log-client.ts";
import { findRequest, findRequests } from "./agents/log-finder.ts";
import { readLogs } from "./agents/log-reader.ts";
import { createAgentMetrics, type AgentMetrics } from "./agents/metrics.ts";
import { openPurgeOrders } from "./agents/purge-route.ts";
import { createRateLimit } from "./agents/rate-limit.ts";
import { createLocalWakeBus } from "./agents/wake.ts";
import { auditRoute } from "./api/audit-route.ts";
import { createCustomerApi } from "./api/customer-api.ts";
import { EventStreams } from "./api/event-streams.ts";
import { operatorRoutes } from "./api/operator-routes.ts";
import { operatorLogRoutes } from "./api/operator-logs.ts";
import { operatorRolloutRoutes } from "./api/operator-rollouts.ts";
import { operatorSiteRoutes } from "./api/operator-sites.ts";
import { entryUrl } from "../base/entry.ts";
import { createBackupHold } from "./backup-hold.ts";
import { startFront } from "./front.ts";
import { startAnalyticsFold } from "./jobs/analytics-fold.ts";
import { startBlobCollection } from "./jobs/blob-collection.ts";
import { startBotImports } from "./jobs/bot-imports.ts";
import { startBotSources } from "./jobs/bot-sources.ts";
import { startClassWarnings } from "./jobs/class-warnings.ts";
import { startFleetActivations, type FleetActivationsDeps } from "./jobs/fleet-activations.ts";
import { startImportDeadlines } from "./jobs/import-deadlines.ts";
import { startRetention } from "./jobs/retention.ts";
import { startRollouts } from "./jobs/rollouts.ts";
import { createMailPages } from "./mail-pages.ts";
import { alertRules, openNotices, type Notices } from "./notices.ts";
import { Judge } from "./judging/judge.ts";
import { openLogs } from "./request-logs.ts";
import { readAuthority } from "./settings/authority.ts";
import { keyFileOf, type CentralSettings } from "./settings/fields.ts";
import { openAgentStore } from "./store/journal/agent-store.ts";
import { dropAudit } from "./store/people/audit.ts";
import { BotImports } from "./store/bots/bot-import.ts";
import { giveFirstKeys } from "./store/engine/first-keys.ts";
import { hasFleetActivations, stepFleetActivations } from "./store/content/fleet-activations.ts";
import { failLeftOver } from "./store/content/import-without.ts";
import { failOverdueImports } from "./store/content/import-deadlines.ts";
import { MarkJournal, type MarkJournalDeps } from "./store/bots/mark-journal.ts";
import { collectBlobs } from "./store/content/blob-collection.ts";
import { openBlobs, type BlobFiles } from "./store/content/blobs.ts";
import { CustomerStore } from "./store/engine/customer-store.ts";
import type { Store } from "./store/engine/database.ts";
import { dropExpiredAgentTokens, dropIdempotencyKeys } from "./store/engine/expiry.ts";
import { openPackageFiles, type PackageFiles } from "./store/packages/package-files.ts";
import { dropEnrolments } from "./store/journal/enrolments.ts";
import { dropEndedTokens } from "./store/people/tokens.ts";
import { siteNames } from "./store/journal/sites.ts";
import { openStoreKey } from "./store/engine/store-key.ts";
import { dropUnreviewed } from "./store/bots/unreviewed-counting.ts";
import { centralStatus, tellWarnings, unreadiness } from "./status.ts";
import { openCentralStore, type CentralStore } from "./store-opening.ts";
import type { Live, LogReader } from "./api/deps.ts";

export type CentralOptions = {
  readonly settings: CentralSettings;
  readonly version: string;
  readonly log: Log;
  readonly health: Health;
  readonly now: () => Date;
  readonly stop: AbortSignal;
  /** Called when central must stop by itself, with what it is to end with; at most once. */
  readonly fail: (error: AccelError) => void;
};

export type Central = AsyncDisposable & {
  readonly port: number;
  /** Throws if a part does not answer in time. */
  readonly probe: (timeoutMs: number) => Promise<void>;
};

const numbersTimeoutMs = 10_000;

/** What all parts share. */
type Ground = CentralOptions & {
  readonly registry: Registry;
  readonly store: Store;
  readonly isStoreShared: boolean;
  readonly openReader: CentralStore["openReader"];
  readonly blobs: BlobFiles;
  readonly packages: PackageFiles;
  readonly thread: LogThread;
  readonly judge: Judge;
  readonly metrics: AgentMetrics;
  /** When central started, ISO 8601. */
  readonly started: string;
  /** Hints of what changes. */
  readonly changes: ChangeBus;
};

/** Opens central. The caller has locked the state directory. */
export async function openCentral(options: CentralOptions): Promise<Central> {
  const { settings, log, now, health } = options;
  await using stack = new AsyncDisposableStack();
  const at = (name: string): string => join(settings.state_dir, name);
  const registry = new Registry();
  const opened = stack.use(await openCentralStore({ ...options, registry }));
  const { store } = opened;
  const sealer = await openStoreKey(store, keyFileOf(settings));
  const blobs = await openBlobs(at("blobs"), store, now);
  const packages = await openPackageFiles(at("packages"), store);
  const metrics = createAgentMetrics(registry);
  const thread = stack.use(await openLogs(at("logs"), numbersOf(settings), log, health, metrics));
  const judge = stack.use(new Judge({ ...options, entry: entryUrl(import.meta.url, "./judge") }));
  const started = now().toISOString();
  const changes = createChangeBus();
  const ways = { store, openReader: opened.openReader, isStoreShared: opened.isShared };
  const files = { ...ways, blobs, packages };
  const shared = { registry, metrics, ...files, thread, judge, started, changes };
  const ground: Ground = { ...options, ...shared };
  const bus = createLocalWakeBus();
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
      warnings: () => health.list(),
      isHttps: settings.base_url.startsWith("https:"),
    }),
  );
  // Closed before the listener, whose closing waits for every connection.
  stack.defer(async () => hub[Symbol.asyncDispose]());
  startJobs(stack, ground, followFleets(ground, customerStore, bus, hub));
  stack.use(startRollouts({ ...ground, customers: customerStore }));
  stack.use(startClassWarnings(ground));
  stack.use(startAcme({ ...ground, customers: customerStore, bus, hub }));
  const collecting = { store, blobs, directory: at("blobs"), randomBytes };
  const collect = async (at: Date, ended: AbortSignal): ReturnType<typeof collectBlobs> =>
    collectBlobs(collecting, at, ended);
  stack.use(startBlobCollection({ ...ground, collect }));
  const status = async (): Promise<unknown> => centralStatus(ground, hub, listener.port);
  const imports = startBotLists(ground, customerStore, bus, stack);
  const routes = {
    status,
    "backup-hold": createBackupHold(blobs, options.stop),
    ...operatorsRoutes(ground, customerStore),
  };
  stack.use(await startControlSocket(at("control.sock"), routes, imports.uploads));
  const owned = stack.move();
  return {
    port: listener.port,
    probe: async (timeoutMs) => void (await thread.stats(timeoutMs)),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

/** Starts what takes in lists of bots: from operators' files, and from URLs. */
function startBotLists(
  ground: Ground,
  customers: CustomerStore,
  bus: ReturnType<typeof createLocalWakeBus>,
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
  return stack.use(startBotImports({ ...ground, imports: new BotImports(customers, wake) }));
}

/** Returns what sets the metrics that are only known when they are asked for. */
function beforeScrapes(ground: Ground): () => Promise<void> {
  const { log } = ground;
  const names = async (): ReturnType<typeof siteNames> => siteNames(ground.store);
  const setAges = createCanaryAges({ ...ground, names });
  const setWarnings = tellWarnings(ground.health, ground.registry);
  return async () => {
    setWarnings();
    // While the store is away, all other metrics are what is looked at.
    await setAges().catch((error: unknown) =>
      log.warn({ reason: messageOf(error) }, "the ages of canaries are not known"),
    );
  };
}

async function openAgentsSide(
  ground: Ground,
  bus: ReturnType<typeof createLocalWakeBus>,
  { sealer, customerStore }: { readonly sealer: Sealer; readonly customerStore: CustomerStore },
  stack: AsyncDisposableStack,
): Promise<{ readonly agents: AgentApi; readonly hub: Hub }> {
  const { settings, metrics } = ground;
  const monotonicMs = (): number => performance.now();
  const reader = stack.use(ground.openReader());
  const rules = { backendRules: backendRules(settings), alertRules: alertRules(settings) };
  const store = await openAgentStore({ ...ground, reader, sealer, ...rules });
  const hub = stack.use(new Hub({ ...ground, store, bus, metrics, monotonicMs }));
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
  });
  return { agents, hub };
}

/**
 * Opens the store together with what tells the journals of changed sets, which ends after all who change
 * them.
 */
async function openCustomerStore(
  { store, now, log }: Ground,
  bus: ReturnType<typeof createLocalWakeBus>,
  sealer: Sealer,
  stack: AsyncDisposableStack,
): Promise<CustomerStore> {
  const transact: MarkJournalDeps["transact"] = async (action) =>
    (await customers.run(async (work) => ({ keep: true, value: await action(work) }))).appended;
  const wake = (ids: readonly number[]): void => bus.publish(ids);
  const marks = stack.use(new MarkJournal({ store, transact, wake, log }));
  const customers = new CustomerStore({ store, sealer, now, randomBytes, marks });
  await marks.open();
  const made = await giveFirstKeys({
    transact: async (action) => customers.transact(action),
    onFailure: (id, error) =>
      log.error({ err: error, deployment_site_id: id }, "a deployment site has no symmetric key"),
  });
  if (made > 0) log.info({ made }, "deployment sites got their first symmetric key");
  return customers;
}

function openCustomersSide(
  ground: Ground,
  bus: ReturnType<typeof createLocalWakeBus>,
  hub: Hub,
  store: CustomerStore,
  { channelTests }: Pick<Notices, "channelTests">,
  stack: AsyncDisposableStack,
): ReturnType<typeof createCustomerApi> {
  const { settings, blobs, packages, thread, judge, changes } = ground;
  const monotonicMs = (): number => performance.now();
  const events = stack.use(
    new EventStreams({ ...ground, store, wakes: bus, monotonicMs, random: Math.random }),
  );
  return createCustomerApi({
    ...ground,
    store,
    randomBytes,
    rateLimit: (limit) => createRateLimit(limit, () => performance.now()),
    ports: {
      changes,
      events,
      journal: { wake: (ids) => bus.publish(ids) },
      live: liveOf(hub),
      receipts: hub,
      logs: logsOf(thread),
      analytics: { read: async (query) => thread.numbers(query) },
      channelTests,
      blobs,
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

function numbersOf(settings: CentralSettings): AnalyticsPlace {
  return {
    path: join(settings.state_dir, "analytics.db"),
    bytesMax: settings["analytics.max"],
  };
}

function liveOf(hub: Hub): Live {
  return {
    sinceMs: Date.now(),
    isLive: (id, instance) => hub.isLive(id, instance),
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

function backendRules(settings: CentralSettings): { readonly otherLoopbackNamesAllowed: boolean } {
  return { otherLoopbackNamesAllowed: settings["devlove.other_loopback_names"] };
}

function followFleets(
  { store, log }: Ground,
  customers: CustomerStore,
  bus: ReturnType<typeof createLocalWakeBus>,
  hub: Hub,
): FleetActivationsDeps {
  const inTouch = {
    isLive: (id: number, instance: string) => hub.isInTouch(id, instance),
    sinceMs: Date.now(),
  };
  return {
    areAny: async () => hasFleetActivations(store),
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
function operatorsRoutes({ settings, thread, stop }: Ground, store: CustomerStore): ControlRoutes {
  return {
    ...operatorRoutes({ store, randomBytes }),
    ...operatorSiteRoutes({ store, authority: () => readAuthority(settings.ca_file) }),
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
  const retaining = startRetention({
    dropIdempotencyKeys: async (at) => dropIdempotencyKeys(store, at),
    dropTokens: async (at) =>
      dropEndedTokens(
        store,
        new Date(at.getTime() - settings["audit.retention_age"]).toISOString(),
      ),
    dropAgentTokens: async (at) => dropExpiredAgentTokens(store, at),
    dropEnrolments: async (at) => dropEnrolments(store, at),
    dropUnreviewed: async (at) => dropUnreviewed(store, at),
    dropAudit: async (at) =>
      dropAudit(store, new Date(at.getTime() - settings["audit.retention_age"])),
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
    (await failOverdueImports(store, at)) + (await failLeftOver(store, at));
  stack.use(startImportDeadlines({ failOverdue, now, log }));
}
