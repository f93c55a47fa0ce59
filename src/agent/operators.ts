// What operators see and command: status, metrics and the control socket, composed from the agent's parts;
// also the reports to central.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { diskSpaceOf } from "../base/disk-space.ts";
import { startControlSocket } from "../base/control-socket.ts";
import { readGauge } from "../base/metrics.ts";
import { listenText } from "../base/settings-fields.ts";
import { repeating } from "../base/wait.ts";
import { exactPatternOf } from "../core/patterns/pattern-recipes.ts";
import { ManifestTable } from "../core/serving/manifest-table.ts";
import { reportCertificatesMax, type Report } from "../wire/channel.ts";
import { startAdminServer } from "./admin/admin-server.ts";
import { FailingOrigins } from "./admin/failing-origins.ts";
import { HostWatch, openFilesCounter } from "./admin/host-watch.ts";
import { OriginWatch } from "./admin/origin-watch.ts";
import { CookieWatch } from "./admin/cookie-watch.ts";
import { controlRoutes, type ControlPorts } from "./admin/control-routes.ts";
import { OriginReport, sumOf, trafficOf } from "./admin/domain-reports.ts";
import {
  LastHour,
  readGauges,
  readingOf,
  sampling,
  type MetricsReading,
} from "./admin/last-hour.ts";
import { StartWatch } from "./admin/start-watch.ts";
import { startProcessMetrics } from "./admin/process-metrics.ts";
import type { AgentStatus } from "./admin/status.ts";
import { ElementFinder } from "./bots/sets/element-finder.ts";
import type { ClaimedBotLookup } from "./bots/unreviewed/user-agents.ts";
import type { Ground } from "./ground.ts";
import { askOrigins } from "./doctor/origins.ts";
import { dryRun } from "./dry-run.ts";
import { selectedBy } from "./steering/clear-order.ts";
import type { Link } from "./link/link.ts";
import {
  describeLogs,
  LaneMetrics,
  summarizeLogs,
  type LogFacts,
} from "./requests/ship/lane-metrics.ts";
import { readTail } from "./requests/ship/tail-reader.ts";
import type { ServedParts } from "./serve.ts";
import { describeVersion, viewsetPorts } from "./releases.ts";
import type { Scrub } from "./scrub/scrub.ts";
import { documentOf } from "./steering/serving.ts";
import {
  checkVisitor,
  listBots,
  whyAddress,
  whyDecision,
  type VisitorParts,
} from "./why-visitor.ts";
import { why } from "./why.ts";

type Parts = {
  readonly ground: Ground;
  readonly served: ServedParts;
  readonly link: Link;
  readonly scrub: Scrub;
};

/** Opens both listeners on the stack. Returns the address of the one for metrics. */
export async function openOperators(stack: AsyncDisposableStack, parts: Parts): Promise<string> {
  const { options, common } = parts.ground;
  const { settings, health, log, now, version } = options;
  const started = now();
  const processMetrics = stack.use(
    startProcessMetrics(common.registry, health, version, started.getTime()),
  );
  const watching = stack.use(watch(parts));
  const { spool, shipper, canary } = parts.ground;
  const laneMetrics = new LaneMetrics(common.registry);
  const refreshLogs = (): void => {
    laneMetrics.refresh(spool.facts(), shipper.state);
    canary.refresh();
  };
  const lastHour = new LastHour();
  const onError = (error: unknown): void =>
    log.error({ err: error }, "taking a sample for the status page failed");
  const read = async (): Promise<MetricsReading> => readNow(parts, refreshLogs);
  stack.use(sampling(lastHour, read, { stop: common.stop, now, onError }));
  const status = async (): Promise<AgentStatus> => {
    await watching.lookAtHost();
    return statusOf(parts, started);
  };
  stack.use(
    await startControlSocket(join(settings.state_dir, "control.sock"), {
      ...controlRoutes(controlPorts(parts, status)),
      ...parts.ground.options.replace,
    }),
  );
  const admin = stack.use(
    await startAdminServer({
      listen: settings["metrics.listen"],
      nodeExporterUrl: settings["metrics.node_exporter_url"],
      oldPages: settings["metrics.old_pages"],
      metrics: async () => {
        processMetrics.refresh();
        refreshLogs();
        parts.ground.rates.refresh(parts.served.serving.state);
        return [await common.registry.getMetricsAsJSON(), ...(await parts.served.pool.metrics())];
      },
      status,
      lastHour,
      zone: () => Intl.DateTimeFormat().resolvedOptions().timeZone,
      now,
      log,
    }),
  );
  return listenText({ ...settings["metrics.listen"], port: admin.port });
}

/** Reads what the status page plots. The rest of the process's metrics is left alone: some of it begins anew with each scrape. */
async function readNow(
  { ground, served }: Parts,
  refreshLogs: () => void,
): Promise<MetricsReading> {
  const sums = await served.pool.sums();
  refreshLogs();
  const { registry } = ground.common;
  const gauges = await Promise.all(
    readGauges.map(async (name) => [name, await readGauge(registry, name)] as const),
  );
  const values = new Map(gauges);
  return readingOf(sums, (name) => values.get(name));
}

/**
 * The time between looks. Shares are counted over windows of ten minutes, so half a minute is soon enough.
 */
const watchPeriodMs = 30_000;
/** The time between looks at the disk: one statfs, and a program that fills it takes seconds. */
const diskPeriodMs = 2_000;

type Watching = AsyncDisposable & {
  /** Takes what may have changed on this host since the last look, for somebody who asks now. Never rejects. */
  lookAtHost(): Promise<void>;
};

/** Looks at what warnings are made of: the counts of domains, and what runs out on this host. */
function watch({ ground: { options, common, spool }, served }: Parts): Watching {
  const { health, log, random, settings } = options;
  const cookies = new CookieWatch(health);
  const full = new OriginWatch(health);
  const failing = new FailingOrigins(options);
  const droppedNow = (): number =>
    Object.values(spool.facts().balance.dropped).reduce((sum, count) => sum + count, 0);
  const host = new HostWatch({ ...options, dropped: droppedNow() });
  const startFiles = new StartWatch(options);
  const openFiles = openFilesCounter();
  const lookAtDisk = async (): Promise<void> =>
    host.take({ dropped: droppedNow(), disk: diskSpaceOf(settings.state_dir) }, performance.now());
  const lookAtHost = async (): Promise<Awaited<ReturnType<typeof served.pool.metrics>>> => {
    const metrics = await served.pool.metrics();
    const refused = sumOf(metrics, "accel_agent_refused_connections_total");
    const uncounted = sumOf(metrics, "accel_agent_limit_uncounted_total");
    host.take({ files: openFiles(), refused, uncounted }, performance.now());
    startFiles.look();
    await lookAtDisk();
    return metrics;
  };
  const look = async (): Promise<void> => {
    const domains = served.serving.state.domains.map(({ name }) => name);
    const metrics = await lookAtHost();
    for (const one of [cookies, full, failing]) one.take(metrics, domains, performance.now());
  };
  const onError = (error: unknown): void =>
    log.error({ err: error }, "looking for what to warn of failed");
  void look().catch(onError); // A disk that is full at the start is told at once.
  const { stop } = common;
  const stack = new AsyncDisposableStack();
  stack.use(repeating(watchPeriodMs, look, { stop, spread: 0.2, random, onError }));
  stack.use(repeating(diskPeriodMs, lookAtDisk, { stop, spread: 0.2, random, onError }));
  return {
    lookAtHost: async () => lookAtHost().then(() => undefined, onError),
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}

/**
 * Certificates that end within this time are reported, since central warns its customers 30 days before the
 * end.
 */
const certificatesToldMs = 45 * 86_400_000;
const certificateNamesMax = 5;

/** Creates the function that makes the reports to central, every 30 s. */
export function createReporter(
  { options, spool, unreviewed, images }: Ground,
  { pool, checks, serving, certificates }: ServedParts,
): () => Promise<Omit<Report, "instance_id">> {
  const origins = new OriginReport();
  return async () => {
    const { accepted, committed, spooled, inMemory, dropped } = await spool.balance();
    const droppedSum = Object.values(dropped).reduce((sum, count) => sum + count, 0);
    const metrics = await pool.metrics();
    const names = serving.state.domains.map(({ name }) => name);
    const domains = origins.take(metrics, names, checks.verdicts());
    const traffic = trafficOf(metrics, names);
    const pictures = images.reported();
    const batch = unreviewed.batch();
    const botsOf = Map.groupBy(batch?.counts ?? [], ({ domain }) => domain);
    const host = hostname();
    return {
      ...(batch !== undefined && { counted: batch.id }),
      ...(host !== "" && { host_name: host }),
      spool: { accepted, delivered: committed, spooled, in_memory: inMemory, dropped: droppedSum },
      domains: domains.map((facts) => {
        const bots = botsOf.get(facts.domain) ?? [];
        const visited = traffic.get(facts.domain);
        const variants = pictures.get(facts.domain);
        return {
          ...facts,
          ...(visited !== undefined && { traffic: visited }),
          ...(variants !== undefined && { variants }),
          unreviewed_bots: bots.map(({ name, description, requests }) => ({
            name,
            description,
            requests,
          })),
        };
      }),
      certificates: certificates.vault
        .expiring(certificatesToldMs, reportCertificatesMax)
        .map(({ names: covered, notAfterMs }) => ({
          names: covered.slice(0, certificateNamesMax),
          not_after: new Date(notAfterMs).toISOString(),
        })),
      warnings: options.health.list().map((warning) => ({ ...warning })),
    };
  };
}

async function statusOf(
  { ground, served, link, scrub }: Parts,
  started: Date,
): Promise<AgentStatus> {
  const { options, sets, index, decisions, images } = ground;
  const { pool, serving, certificates, releases } = served;
  const { settings, version, health } = options;
  const { state } = serving;
  const workers = pool.status();
  const secure = settings["accelerator.tls_listen"];
  return {
    program: "accel-agent",
    version,
    name16: settings.name16,
    started: started.toISOString(),
    ready: workers.live > 0 && workers.version === state.version,
    serving: {
      state_version: state.version,
      workers: workers.live,
      listen: listenText({ ...settings["accelerator.listen"], port: workers.port }),
      tls_listen:
        secure === undefined
          ? null
          : listenText({ ...secure, port: workers.tlsPort ?? secure.port }),
      domains: state.domains.map(({ name, hosts, manifest }) => {
        const [main] = hosts;
        const { views, site, bots } = main ?? {};
        const local =
          site === null || site === undefined ? "no devlove is active" : "this host's own";
        return {
          domain: name,
          hosts: hosts.map((host) => host.name),
          viewset: manifest ?? local,
          version: describeVersion(releases, name),
          files: views?.kind === "manifest" ? new ManifestTable(views.table).count : null,
          bots: {
            mode: bots?.mode ?? "enforce",
            unknown_bots: unknownBots(bots?.unknownBotsCanAccess ?? null),
          },
        };
      }),
    },
    parts: {
      link: link.status(),
      workers,
      sets: ground.setWatch.describe(sets.list()),
      vault: certificates.vault.facts(),
      cache: snakeCase(await index.stats()),
      scrub: scrub.facts(),
      spool: summarizeLogs(await logFacts(ground)),
      decisions: decisions.facts(),
      images: images.facts(),
    },
    warnings: health.told(),
  };
}

async function logFacts({ spool, shipper, canary }: Ground): Promise<LogFacts> {
  await spool.balance();
  return describeLogs(spool.facts(), shipper, canary.facts());
}

/** Renames facts for operators to snake case, as on the wire. */
function snakeCase(facts: object): Readonly<Record<string, unknown>> {
  const name = (key: string): string =>
    key.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  return Object.fromEntries(Object.entries(facts).map(([key, value]) => [name(key), value]));
}

function unknownBots(allowed: boolean | null): "allowed" | "blocked" | "blocked by default" {
  if (allowed === null) return "blocked by default";
  return allowed ? "allowed" : "blocked";
}

/** The known crawlers are three MiB, and take a tenth of a second to be compiled. Main needs them only where somebody asks, so they are loaded with the first question. */
async function claimedBots(): Promise<ClaimedBotLookup> {
  const { openClaimedBots } = await import("./bots/unreviewed/user-agents.ts");
  return openClaimedBots();
}

function controlPorts(
  { ground, served: { serving, viewsets, releases, lateDrops }, scrub }: Parts,
  status: () => Promise<AgentStatus>,
): ControlPorts {
  const { index, db, decisions, rates, spool, options } = ground;
  let bots: Promise<ClaimedBotLookup> | undefined;
  const elements = new ElementFinder(db.sqlite);
  const visitors = async (): Promise<VisitorParts> => ({
    state: serving.state,
    claimedBot: await (bots ??= claimedBots()),
    elements,
    decisions,
    rates,
    policies: new Map(documentOf(db, "policy")?.domains.map((one) => [one.domain, one] as const)),
    policiesChangedAt: db.changedAt("policy"),
  });
  const urls = () => ({
    state: serving.state,
    blobsDir: viewsets.blobsDir,
    nowMs: options.now().getTime(),
    dropsUntil: lateDrops.until,
  });
  return {
    status,
    netcheck: async () => askOrigins(serving.state.domains.flatMap(({ hosts }) => hosts)),
    cacheSearch: async ({ domain, host, patterns, limit }) => {
      const found = await index.search({ scope: { domain, host }, patterns, limit });
      const { matched, overBudget, samples } = found;
      return {
        matched,
        ...(overBudget && { over_budget: true }),
        samples: samples.map(({ storedAtMs, ...entry }) => ({
          ...entry,
          stored_at: new Date(storedAtMs).toISOString(),
          pattern: exactPatternOf(entry),
        })),
      };
    },
    cacheDryRun: ({ domain, host, ...asked }) =>
      dryRun(index, { domain, host, ...selectedBy({ domain, ...asked }, serving.state) }),
    cacheClear: async ({ domain, host, ...asked }) => {
      const began = performance.now();
      const clearId = `local-${randomUUID()}`;
      const { applied, gone } = await serving.giveClear((state) => {
        const selected = selectedBy({ domain, ...asked }, state);
        return index.clear({ clearId, domain, host, seq: 0, ...selected });
      });
      return {
        clear_id: clearId,
        ...snakeCase(await applied),
        ...snakeCase(await gone),
        took_ms: Math.round(performance.now() - began),
      };
    },
    cacheStats: async () => snakeCase(await index.stats()),
    cacheCheck: () => index.check(),
    why: (url, cookie) => why({ index, ...urls() }, url, cookie),
    whyAddress: async (visitor) => whyAddress(await visitors(), visitor),
    whyDecision: async (id) => whyDecision(await visitors(), id),
    botsCheck: async (visitor) => checkVisitor(await visitors(), visitor),
    botsList: async () => listBots(await visitors()),
    ...viewsetPorts(releases, serving, scrub),
    logsBacklog: () => logFacts(ground),
    logsTail: (query, signal) => readTail(spool.tail(query.follow), query, signal),
    defaultDomain: options.settings["accelerator.default_domain"] ?? null,
    mainDomainOf: (host) =>
      serving.state.domains.find((domain) => domain.hosts.some(({ name }) => name === host))?.name,
  };
}
