// The operators' listener: metrics for Prometheus, liveness, readiness, the status page. It listens on
// loopback by default, tells nothing secret and changes nothing.

import type { IncomingMessage, ServerResponse } from "node:http";
import { readFileSync, statfsSync } from "node:fs";
import { hostname, machine, release, type as sysname } from "node:os";
import { Client } from "undici";
import { listenHttp, type Listener } from "../../base/http-listener.ts";
import type { Log } from "../../base/log.ts";
import { exposeMetrics, metricsContentType, type MetricsData } from "../../base/metrics.ts";
import { messageOf } from "../../core/faults.ts";
import { exposeHost, type HostFiles } from "./node-collectors.ts";
import type { LastHour } from "./last-hour.ts";
import { pagePolicy } from "./page-sheet.ts";
import { reloadQuery, statusPage } from "./status-page.ts";
import type { AgentStatus } from "./status.ts";

export type AdminOptions = {
  readonly listen: { readonly host: string; readonly port: number };
  /** The node_exporter whose metrics are passed on; undefined if there is none. */
  readonly nodeExporterUrl: string | undefined;
  readonly metrics: () => Promise<readonly MetricsData[]>;
  /** Whether the pages hold the names that they held in the release before, when most were on both. */
  readonly oldPages: boolean;
  readonly status: () => Promise<AgentStatus>;
  readonly lastHour: Pick<LastHour, "view">;
  /** Returns the host's time zone, by its IANA name: found out when a page is made, for it is what makes a process load ICU. */
  readonly zone: () => string;
  readonly now: () => Date;
  readonly log: Log;
};

type Answer = {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** What a browser may load for it (Content-Security-Policy); nothing unless said otherwise. */
  readonly policy?: string;
};

const passThroughTimeoutMs = 5_000;
const text = "text/plain; charset=utf-8";
const nothingLoaded = "default-src 'none'; frame-ancestors 'none'";

export async function startAdminServer(options: AdminOptions): Promise<Listener> {
  const page = async (which: MetricPage): Promise<Answer> => {
    const isThere = (family: string): boolean =>
      options.oldPages ? wasOn(which, family) : pageOf(family) === which;
    return metrics(await exposeMetrics(await options.metrics(), isThere));
  };
  const routes: Readonly<Record<string, (query: string) => Promise<Answer>>> = {
    "/metrics": async () => page("edge"),
    "/metrics/deployment": async () => page("deployment"),
    "/metrics/node_exporter": () => hostMetrics(options),
    "/healthz": async () => ({ status: 200, type: text, body: "alive\n" }),
    "/readyz": () => readiness(options),
    "/": (query) => statusAnswer(options, query),
  };
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [path = "/", query = ""] = (incoming.url ?? "/").split("?", 2);
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined)
      return send(response, { status: 404, type: text, body: `nothing at ${path}; see /\n` });
    if (incoming.method !== "GET" && incoming.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return send(response, { status: 405, type: text, body: "only GET and HEAD\n" });
    }
    send(response, await route(query));
  };
  return listenHttp((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      options.log.error({ error: messageOf(error), path: incoming.url }, "admin request failed");
      if (!response.headersSent)
        send(response, { status: 500, type: text, body: "failed; the log says why\n" });
    });
  }, options.listen);
}

function send(
  response: ServerResponse,
  { status, type, body, policy = nothingLoaded }: Answer,
): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
    "content-security-policy": policy,
    "referrer-policy": "no-referrer",
  });
  response.end(body);
}

function metrics(body: string): Answer {
  return { status: 200, type: metricsContentType, body };
}

async function statusAnswer(
  { status, lastHour, zone, now }: AdminOptions,
  query: string,
): Promise<Answer> {
  const facts = await status();
  const view = {
    hour: lastHour.view(now().getTime()),
    zone: zone(),
    reloads: query === reloadQuery,
  };
  const type = "text/html; charset=utf-8";
  return { status: 200, type, body: statusPage(facts, view), policy: pagePolicy };
}

/** Answers 200 if every worker serves the committed state, otherwise 503; the body lists the errors. */
async function readiness({ status }: AdminOptions): Promise<Answer> {
  const { ready, warnings } = await status();
  const errors = warnings
    .filter(({ severity }) => severity === "error")
    .map(({ code, text: what }) => `${code}: ${what}\n`);
  return {
    status: ready ? 200 : 503,
    type: text,
    body: `${ready ? "ready" : "not ready"}\n${errors.join("")}`,
  };
}

async function hostMetrics({ nodeExporterUrl, now }: AdminOptions): Promise<Answer> {
  if (nodeExporterUrl === undefined) return metrics(exposeHost(hostFiles(now)));
  const { origin, pathname, search } = new URL(nodeExporterUrl);
  const client = new Client(origin, {
    headersTimeout: passThroughTimeoutMs,
    bodyTimeout: passThroughTimeoutMs,
  });
  try {
    const { statusCode, body } = await client.request({
      method: "GET",
      path: `${pathname}${search}`,
    });
    const content = await body.text();
    if (statusCode === 200) return metrics(content);
    return { status: 502, type: text, body: `${nodeExporterUrl} answered ${statusCode}\n` };
  } catch (error) {
    return {
      status: 502,
      type: text,
      body: `${nodeExporterUrl} cannot be reached: ${messageOf(error)}\n`,
    };
  }
}

// Which page shows which family. Both pages are jobs of the scrape configuration, so each name is on one of
// them only, and a sum over all jobs counts everything once.
//
//   /metrics               what runs on this host: process, threads, event loop, workers, connections, TLS,
//                          health
//   /metrics/deployment    what it does for the customer's deployment: requests, cache, origins, link, sets,
//                          viewsets, certificates, spool

type MetricPage = "edge" | "deployment";

const edgeFamilies =
  /^accel_agent_(?:build|process|thread|health|warning|workers|worker|open_connections|unclean_ends|refused_connections|http2|proxy_header|tls)(?:_|$)/;

export function pageOf(family: string): MetricPage {
  return edgeFamilies.test(family) ? "edge" : "deployment";
}

/**
 * Returns whether the release before had a family on a page: everything at `/metrics`, and all but the
 * process again at `/metrics/deployment`.
 */
function wasOn(page: MetricPage, family: string): boolean {
  return page === "edge" || !/^accel_agent_(?:(?:process|thread|build)_|warning$)/.test(family);
}

// The files of the host, as node-collectors reads them.

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined; // A collector whose file is missing has no samples.
  }
}

export function hostFiles(now: () => Date): HostFiles {
  return {
    proc: (name) => attempt(() => readFileSync(`/proc/${name}`, "utf8")),
    space: (mountPoint) =>
      attempt(() => {
        const { bsize, blocks, bfree, bavail } = statfsSync(mountPoint);
        return { sizeBytes: blocks * bsize, freeBytes: bfree * bsize, availBytes: bavail * bsize };
      }),
    nowS: now().getTime() / 1_000,
    uname: { sysname: sysname(), release: release(), nodename: hostname(), machine: machine() },
  };
}
