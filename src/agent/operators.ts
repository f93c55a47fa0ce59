// What operators see and command: status, metrics, reports and the control socket, composed over the agent's parts.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { startControlSocket } from "../base/control-socket.ts";
import { formatRange, parseRange } from "../core/ip.ts";
import { ManifestTable } from "../core/manifest-table.ts";
import type { ServedHost } from "../core/serving-state.ts";
import type { Report } from "../wire/channel.ts";
import { startAdminServer } from "./admin/admin-server.ts";
import { controlRoutes, type ControlPorts } from "./admin/control-routes.ts";
import { OriginReport } from "./admin/origin-report.ts";
import { startProcessMetrics } from "./admin/process-metrics.ts";
import type { AgentStatus } from "./admin/status.ts";
import { judgeVisitor } from "./bots/evidence.ts";
import { openClaimedBots } from "./bots/user-agents.ts";
import type { Ground } from "./ground.ts";
import type { Link } from "./link/link.ts";
import type { Served } from "./serve.ts";

type Parts = { readonly ground: Ground; readonly served: Served; readonly link: Link };

/** Opens both listeners on the stack; the address of the metrics one. */
export async function openOperators(stack: AsyncDisposableStack, parts: Parts): Promise<string> {
  const { options, common } = parts.ground;
  const { settings, health, log, now, version } = options;
  const started = now();
  const processMetrics = stack.use(
    startProcessMetrics(common.registry, health, version, started.getTime()),
  );
  const status = async (): Promise<AgentStatus> => statusOf(parts, started);
  stack.use(
    await startControlSocket(
      join(settings.state_dir, "control.sock"),
      controlRoutes(controlPorts(parts, status)),
    ),
  );
  const admin = stack.use(
    await startAdminServer({
      listen: settings["metrics.listen"],
      nodeExporterUrl: settings["metrics.node_exporter_url"],
      metrics: async () => {
        processMetrics.refresh();
        return [await common.registry.getMetricsAsJSON(), ...(await parts.served.pool.metrics())];
      },
      status,
      now,
      log,
    }),
  );
  return `${settings["metrics.listen"].host}:${admin.port}`;
}

/** For the reports to central, every 30 s. */
export function createReporter(
  { options, spool }: Ground,
  { pool, serving }: Served,
): () => Promise<Omit<Report, "instance_id">> {
  const origins = new OriginReport();
  return async () => {
    const { accepted, committed, spooled, inMemory, dropped } = await spool.balance();
    const droppedSum = Object.values(dropped).reduce((sum, count) => sum + count, 0);
    return {
      spool: { accepted, delivered: committed, spooled, in_memory: inMemory, dropped: droppedSum },
      domains: origins.take(
        await pool.metrics(),
        serving.state.domains.map(({ name }) => name),
      ),
      warnings: options.health.list().map((warning) => ({ ...warning })),
    };
  };
}

async function statusOf({ ground, served, link }: Parts, started: Date): Promise<AgentStatus> {
  const { options, sets, index, spool } = ground;
  const { pool, serving } = served;
  const { settings, version, health } = options;
  const { state } = serving;
  const workers = pool.status();
  return {
    program: "accel-agent",
    version,
    name16: settings.name16,
    started: started.toISOString(),
    ready: workers.live > 0 && workers.version === state.version,
    serving: {
      state_version: state.version,
      workers: workers.live,
      listen: `${settings["accelerator.listen"].host}:${pool.port}`,
      domains: state.domains.map(({ name, hosts, manifest }) => {
        const [main] = hosts;
        const { views, site, bots } = main ?? {};
        const local =
          site === null || site === undefined ? "no devlove is active" : "this host's own";
        return {
          domain: name,
          hosts: hosts.map((host) => host.name),
          viewset: manifest ?? local,
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
      sets: sets.list(),
      cache: snakeCase(await index.stats()),
      spool: snakeCase(await spool.balance()),
    },
    warnings: health.list(),
  };
}

/** Facts for operators are named as everything on the wire is. */
function snakeCase(facts: object): Readonly<Record<string, unknown>> {
  const name = (key: string): string =>
    key.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  return Object.fromEntries(Object.entries(facts).map(([key, value]) => [name(key), value]));
}

function unknownBots(allowed: boolean | null): "allowed" | "blocked" | "blocked by default" {
  if (allowed === null) return "blocked by default";
  return allowed ? "allowed" : "blocked";
}

function controlPorts(
  { ground: { index, sets, spool }, served: { serving } }: Parts,
  status: () => Promise<AgentStatus>,
): ControlPorts {
  const claimedBot = openClaimedBots();
  const hosts = (): readonly ServedHost[] =>
    serving.state.domains.flatMap((domain) => domain.hosts);
  return {
    status,
    cacheSearch: (query) => index.search(query),
    cacheClear: async ({ domain, host, patterns }) => {
      const began = performance.now();
      const { applied, gone } = index.clear({
        clearId: `local-${randomUUID()}`,
        domain,
        host,
        patterns,
        seq: 0,
      });
      return {
        ...snakeCase(await applied),
        ...snakeCase(await gone),
        took_ms: Math.round(performance.now() - began),
      };
    },
    cacheStats: async () => snakeCase(await index.stats()),
    cacheCheck: () => index.check(),
    botsCheck: ({ ip, userAgent, host }) => ({
      address: canonicalAddress(ip),
      claims: claimedBot(userAgent) ?? null,
      hosts: hosts()
        .filter(({ name }) => host === undefined || name === host)
        .map(({ name, bots }) => ({
          host: name,
          ...judgeVisitor(bots, ip, claimedBot(userAgent)?.name),
        })),
    }),
    botsList: () => sets.list(),
    logsBacklog: async () => snakeCase(await spool.balance()),
    mainDomainOf: (host) =>
      serving.state.domains.find((domain) => domain.hosts.some(({ name }) => name === host))?.name,
  };
}

function canonicalAddress(ip: string): string {
  const parsed = parseRange(ip);
  return parsed.ok ? formatRange(parsed.range) : ip;
}
