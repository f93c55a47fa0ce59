// Central's one HTTP listener: it passes requests to the customers' API and to the agents' side, and serves the
// console and a few pages of its own.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { HealthWarning } from "../base/health.ts";
import type { Listener } from "../base/http-listener.ts";
import { KeptListener, type Served, type ServedEnd } from "../base/kept-listener.ts";
import type { Log } from "../base/log.ts";
import { metricsContentType, type Registry } from "../base/metrics.ts";
import { devloveJsonSchemaPath, devloveJsonSchemaText } from "../wire/devlove-json-schema.ts";
import { agentApiPrefix } from "../wire/token.ts";
import type { AgentApi } from "./agents/agent-api.ts";
import { describedPage, describedText } from "./api/http/described.ts";
import { openApiPath } from "./api/openapi/openapi.ts";
import { openApiPagePath, openApiPagePolicy } from "./api/openapi/openapi-page.ts";
import { chosenCoding, readConsole, type ConsoleFile } from "./console-files.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export type FrontOptions = {
  readonly listen: { readonly host: string; readonly port: number };
  /** Where it is served; unsaid: at a listener of its own. */
  readonly door?: KeptListener;
  readonly customers: Handler;
  /** The pages to which links in mails lead. */
  readonly mailPages: Handler;
  readonly agents: AgentApi;
  readonly registry: Registry;
  /** Sets the metrics that are only known when they are asked for. */
  readonly beforeScrape: () => Promise<void>;
  readonly version: string;
  /**
   * Returns what keeps central from doing its work; nothing if it is ready. It may take as long as the store
   * takes.
   */
  readonly unreadiness: () => Promise<readonly string[]>;
  /** Whether others have what this central lacks: it is to get nobody new, and sends off whom it has. */
  readonly isLone: () => boolean;
  readonly warnings: () => readonly HealthWarning[];
  /** After it aborted, no channel is opened any more. */
  readonly stop: AbortSignal;
  /** Aborted when requests that are under way at an end must be answered now. */
  readonly late?: Pick<AbortController, "abort">;
  /** Instead of the usual times of an end, in milliseconds. */
  readonly endTimes?: Partial<typeof endTimesDefault>;
  /** Whether central is reached over TLS; browsers that saw it once then use only TLS. */
  readonly isHttps: boolean;
  readonly log: Log;
};

type Page = {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  /** What a page may load (Content-Security-Policy). */
  readonly policy?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * Enough for a whole upload of 4 GiB at 10 Mbit/s. A connection that stands still is cut by the idle limit.
 */
const requestTimeoutMs = 3_600_000;
const idleTimeoutMs = 90_000; // A long poll is 30 s, a clear waits at most 30 s.
const aboutPath = "/about/";
const consolePath = "/console/";
const consolePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  // Nothing of a visitor can become markup: a script that assigns text to innerHTML throws.
  "require-trusted-types-for 'script'",
  "trusted-types worker",
].join("; ");
const plain = "text/plain; charset=utf-8";
const html = "text/html; charset=utf-8";

/** The pages about the customers' API, for readers and editors, who have no token. */
const described = new Set([
  devloveJsonSchemaPath,
  openApiPath,
  openApiPagePath,
  openApiPagePath.slice(0, -1),
]);

const endTimesDefault = {
  drainMs: 1_000,
  keptMs: 4_000,
  /** So long after a stop began whoever waits is answered. The unit has `TimeoutStopSec=30`; channels that are drained have 12 s of it, and behind the requests logs and store take some. */
  lastMs: 16_000,
  graceMs: 2_000,
};

/**
 * Fields that keep an answer from being used for anything but reading. Pages that need more say so
 * themselves.
 */
const guards = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
} as const;
const yearS = 31_536_000;

const unavailable = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n";
const anewRetryS = 2;

/** The listener of a central that may be opened anew. Whoever comes meanwhile is told so, and to come again. */
export function createDoor(): KeptListener {
  return new KeptListener({
    request: (request, response) => {
      const [path = ""] = (request.url ?? "").split("?", 1);
      response.shouldKeepAlive = false;
      for (const [name, value] of Object.entries(guards)) response.setHeader(name, value);
      if (path === "/healthz") return send(response, { status: 200, type: plain, body: "alive\n" });
      const detail = "central is opened anew; try again, with the same Idempotency-Key";
      const isOfAgent = path.startsWith(`${agentApiPrefix}/`);
      const body = isOfAgent
        ? { code: "unavailable", message: detail }
        : { type: "about:blank", title: "Service Unavailable", status: 503, detail };
      send(response, {
        status: 503,
        type: isOfAgent ? "application/json" : "application/problem+json",
        body: JSON.stringify(body),
        headers: { "retry-after": `${anewRetryS}` },
      });
    },
    upgrade: (_, socket) => void socket.end(unavailable),
  });
}

/** Starts the listener. Throws PORT_TAKEN or ADDRESS_UNUSABLE. */
export async function startFront(options: FrontOptions): Promise<Listener> {
  const { customers, agents, isHttps, log, stop } = options;
  const consoleFiles = readConsole();
  const handler: Handler = (request, response) => {
    const [path = "/", query = ""] = (request.url ?? "/").split("?", 2);
    if (path.startsWith(`${agentApiPrefix}/`)) return agents.handle(request, response);
    for (const [name, value] of Object.entries(guards)) response.setHeader(name, value);
    if (isHttps) response.setHeader("strict-transport-security", `max-age=${yearS}`);
    if (path.startsWith("/mail/")) return options.mailPages(request, response);
    if (path.startsWith("/presentation-api/") && !described.has(path))
      return customers(request, response);
    const serve = async (): Promise<void> =>
      send(response, await ownPage(options, consoleFiles, request, [path, query]));
    serve().catch((error: unknown) => {
      log.error({ err: error, path }, "a page failed");
      if (response.headersSent) response.destroy();
      else send(response, { status: 500, type: plain, body: "failed; the log says why\n" });
    });
  };
  const { door = createDoor() } = options;
  const upgrade: Served["upgrade"] = (request, socket, head) => {
    if (stop.aborted) socket.end(unavailable);
    else agents.upgrade(request, socket, head);
  };
  const served = { request: handler, upgrade };
  const listener = await door.serve(options.listen, served, endOf(options));
  listener.server.requestTimeout = requestTimeoutMs;
  listener.server.timeout = idleTimeoutMs;
  return listener;
}

/** The end of what is served. The time of the last one is counted from the stop, for channels are drained before. */
function endOf({ stop, late, endTimes }: FrontOptions): ServedEnd {
  const { lastMs, ...times } = { ...endTimesDefault, ...endTimes };
  let stoppedMs: number | undefined;
  stop.addEventListener("abort", () => (stoppedMs = performance.now()), { once: true });
  return {
    ...times,
    lastMs: () => {
      const nowMs = performance.now();
      return Math.max(times.drainMs, lastMs - (nowMs - (stoppedMs ?? nowMs)));
    },
    onLate: () => late?.abort(),
  };
}

async function ownPage(
  options: FrontOptions,
  consoleFiles: ConsoleFiles,
  request: IncomingMessage,
  [path, query]: readonly [string, string],
): Promise<Page> {
  const pages: Readonly<Record<string, () => Promise<Page>>> = {
    "/metrics": async () => {
      await options.beforeScrape();
      return { status: 200, type: metricsContentType, body: await options.registry.metrics() };
    },
    "/healthz": async () => ({ status: 200, type: plain, body: "alive\n" }),
    "/readyz": () => readiness(options, query),
    [devloveJsonSchemaPath]: async () => ({
      status: 200,
      type: "application/schema+json",
      body: devloveJsonSchemaText(),
    }),
    [openApiPath]: async () => ({ status: 200, type: "application/json", body: describedText() }),
    [openApiPagePath]: async () => ({
      status: 200,
      type: html,
      body: describedPage(),
      policy: openApiPagePolicy,
    }),
    "/": async () => consolePage(consoleFiles, request),
    [aboutPath]: async () => ({
      status: 200,
      type: html,
      body: aboutPage(options),
    }),
  };
  // Relative links on the page of the API need its slash.
  const whole = [openApiPagePath, aboutPath].find((one) => path === one.slice(0, -1));
  if (whole !== undefined)
    return { status: 308, type: plain, body: "", headers: { location: whole } };
  const page = Object.hasOwn(pages, path) ? pages[path] : consolePart(consoleFiles, request, path);
  if (page === undefined) return { status: 404, type: plain, body: "nothing here; see /about/\n" };
  if (request.method !== "GET" && request.method !== "HEAD")
    return { status: 405, type: plain, body: "only GET and HEAD\n" };
  return page();
}

type ConsoleFiles = ReadonlyMap<string, ConsoleFile> | undefined;

function consolePage(files: ConsoleFiles, request: IncomingMessage): Page {
  const file = files?.get("index.html");
  if (file !== undefined) {
    const page = filePage(file, request);
    return {
      ...page,
      policy: consolePolicy,
      headers: {
        ...page.headers,
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
      },
    };
  }
  // Packages and builds bring it; this is a program that was started from its sources without npm.
  const body = `the console was not built; npm run central builds it and starts central. ${aboutPath} is there\n`;
  return { status: 503, type: plain, body };
}

/** Finds a file that the console's page loads. Its name changes with its content. */
function consolePart(
  files: ConsoleFiles,
  request: IncomingMessage,
  path: string,
): (() => Promise<Page>) | undefined {
  if (!path.startsWith(consolePath)) return undefined;
  const name = path.slice(consolePath.length);
  const file = name === "index.html" ? undefined : files?.get(name);
  if (file === undefined) return undefined;
  return async () => {
    const page = filePage(file, request);
    const kept = `public, max-age=${yearS}, immutable`;
    // A worker is governed by its own policy, and opens the event stream.
    const policy =
      "default-src 'none'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'";
    return { ...page, policy, headers: { ...page.headers, "cache-control": kept } };
  };
}

function filePage(
  { type, bodies }: ConsoleFile,
  { headers }: IncomingMessage,
): Page & {
  readonly headers: Readonly<Record<string, string>>;
} {
  const coding = chosenCoding(headers["accept-encoding"]);
  return {
    status: 200,
    type,
    body: bodies[coding],
    headers: {
      vary: "accept-encoding",
      ...(coding !== "identity" && { "content-encoding": coding }),
    },
  };
}

/** A balancer that says `?stopping=404` is told a stop so, and a central that is to be left: HAProxy takes 404 for a server that is to get nobody new, and keeps what is open until it is drained. */
async function readiness(
  { unreadiness, isLone, stop }: FrontOptions,
  query: string,
): Promise<Page> {
  const reasons = await unreadiness();
  if ((stop.aborted || isLone()) && new URLSearchParams(query).get("stopping") === "404")
    return { status: 404, type: plain, body: `${reasons.join("\n")}\n` };
  return reasons.length === 0
    ? { status: 200, type: plain, body: "ready\n" }
    : { status: 503, type: plain, body: `${reasons.join("\n")}\n` };
}

function aboutPage({ version, warnings }: FrontOptions): string {
  const told = warnings().map(
    ({ code, text, hint }) => `<li>${escape(`${code}: ${text}. ${hint}`)}`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>accel-central</title>
<h1>accel-central ${escape(version)}</h1>
<p>The service that steers the accelerators.
<ul>
<li><a href="/">the console</a>: look, clear, block and activate in a browser
<li><code>/presentation-api/v1/</code> the customers' API: <a href="${openApiPagePath}">read it</a>, <a href="${openApiPath}">OpenAPI document</a>, <a href="${devloveJsonSchemaPath}">JSON Schema of devlove/1</a> for editors
<li><code>/agent-api/v1/</code> the agents' side
<li><a href="/metrics">/metrics</a>, <a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a>
</ul>
${told.length === 0 ? "<p>No warnings." : `<ul>${told.join("\n")}</ul>`}
</html>
`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function send(response: ServerResponse, { status, type, body, policy, headers }: Page): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(body),
    ...(status === 405 && { allow: "GET, HEAD" }),
    ...(policy !== undefined && { "content-security-policy": policy }),
    ...headers,
  });
  response.end(body);
}
