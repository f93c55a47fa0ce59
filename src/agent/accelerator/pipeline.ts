// The way of a request: client address → host → verdict → redirect → static file → cache and origin. Each step answers or passes on.

import type { ClientAddresses } from "../../core/http/client-address.ts";
import { parseTarget, type RequestTarget } from "../../core/http/request-path.ts";
import { fieldValue, type Field } from "../../core/http/http-fields.ts";
import type { DecisionTeller } from "../bots/decisions/decision-teller.ts";
import type { VisitorJudge } from "../bots/decisions/evidence.ts";
import { sendText, withSiteHeaders, writeHead } from "./doors/answer.ts";
import type { Exchange } from "./doors/exchange.ts";
import { answerGenerated } from "./cached/generated.ts";
import type { Served, ServedSite } from "./pool/host-table.ts";
import type { GeneratedDeps } from "./cached/inquiry.ts";
import { askedPort, visitorScheme } from "./origin/origin-request.ts";
import { asksForUpgrade, refusalOf } from "./doors/request-check.ts";
import { routeStatic, SourceChanged, type SiteFile } from "./files/site-files.ts";
import type { StagedStates } from "./pool/staged-states.ts";
import { answerNotFound, answerStatic, type StaticAnswerDeps } from "./files/static-answer.ts";
import type { WorkerMetrics } from "./records/worker-metrics.ts";

export type PipelineDeps = GeneratedDeps &
  StaticAnswerDeps & {
    readonly states: StagedStates;
    readonly clients: ClientAddresses;
    readonly judge: VisitorJudge;
    readonly decisions: Pick<DecisionTeller, "note">;
    /** Where HTTPS is served; null: not by this program. */
    readonly tlsPort: number | null;
  };

/** A file that changed during each of so many reads is being written. */
const readsMax = 4;
const methodsOfFiles = "GET, HEAD, OPTIONS";
const methodsOfSites = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE";

/** Resolves when the answer has been handed over. Throws when the visitor left or the answer must break. */
export async function answer(deps: PipelineDeps, exchange: Exchange): Promise<void> {
  identify(deps, exchange);
  const target = parseTarget(exchange.request.url ?? "");
  exchange.authority = target?.authority ?? fieldValue(exchange.fields, "host") ?? "";
  const refusal = refusalOf(exchange);
  if (refusal !== undefined) {
    const { status, text } = refusal;
    sendText(exchange, status, text, status === 405 ? [["Allow", methodsOfSites]] : []);
    return;
  }
  if (target === undefined) {
    answerOddTarget(exchange);
    return;
  }
  const served = findHost(deps, exchange);
  if (served === undefined) return;
  exchange.domain = served.domain;
  // Not over plain HTTP, where anybody could say it (RFC 6797 §7.2).
  if (visitorScheme(exchange) === "https") exchange.hstsS = served.compiled?.site.tls.hsts_s ?? 0;
  if (isBlocked(deps, exchange, served)) return;
  if (served.compiled === undefined) {
    const text = `${served.host.name} is linked, but no configuration (devlove) is active for it.`;
    sendText(exchange, 503, text);
    return;
  }
  if (asksForUpgrade(exchange)) {
    sendText(exchange, 501, "WebSocket connections are not passed on in this version.");
    return;
  }
  if (served.compiled.site.tls.redirect_http && visitorScheme(exchange) === "http") {
    redirectToHttps(deps, exchange, served.compiled, target);
    return;
  }
  await answerSite(deps, exchange, served.compiled, target);
}

function identify({ clients }: PipelineDeps, exchange: Exchange): void {
  const { peer } = exchange.connection;
  if (peer !== undefined) exchange.client = clients.ofRequest(peer, exchange.fields);
}

function answerOddTarget(exchange: Exchange): void {
  if (exchange.request.url === "*" && exchange.method === "OPTIONS")
    answerOptions(exchange, methodsOfSites, []);
  else sendText(exchange, 400, "The request target is neither a path nor an http URL.");
}

function answerOptions(exchange: Exchange, allow: string, fields: readonly Field[]): void {
  writeHead(exchange, 204, [["Allow", allow], ...fields]);
  exchange.response.end();
}

/** Undefined: nobody is served under this name, and the visitor has been told. */
function findHost({ states }: PipelineDeps, exchange: Exchange): Served | undefined {
  const table = states.current();
  if (table.version === 0) {
    sendText(exchange, 503, "The accelerator is starting.", [["Retry-After", "1"]]);
    return undefined;
  }
  const routed = table.route(exchange.authority);
  if (routed.kind === "served") return routed.served;
  if (routed.kind === "malformed") sendText(exchange, 400, "The Host field names no host.");
  else if (routed.host === "") sendText(exchange, 421, "The request names no host.");
  else {
    const host = JSON.stringify(routed.host.slice(0, 253));
    sendText(exchange, 421, `No site is served here under the name ${host}.`);
  }
  return undefined;
}

const countVerdict = {
  allow: (metrics: WorkerMetrics) => metrics.accel_agent_allowed_total,
  block: (metrics: WorkerMetrics) => metrics.accel_agent_blocked_total,
  "would-block": (metrics: WorkerMetrics) => metrics.accel_agent_would_block_total,
} as const;

/** In one step with the look-up of the state: its tables are this request's no longer once it waits. */
function isBlocked(
  { judge, metrics, decisions }: PipelineDeps,
  exchange: Exchange,
  { domain, host }: Served,
): boolean {
  const userAgent = fieldValue(exchange.fields, "user-agent");
  const verdict = judge(host.bots, exchange.client?.text ?? "", userAgent, domain);
  exchange.verdict = verdict;
  const { kind, reason } = verdict;
  countVerdict[kind](metrics).inc({ domain, reason });
  if (kind === "allow") return false;
  const id = decisions.note({
    atMs: exchange.startedWallMs,
    host: host.name,
    clientIp: exchange.client?.text ?? "",
    userAgent,
    verdict,
    policyOf: host.bots.unknownBotsPolicyOf,
  });
  if (kind === "would-block") return false;
  exchange.cache = "blocked";
  sendText(exchange, 403, `Access to this site is denied (${reason}).`, [["X-Accel-Decision", id]]);
  return true;
}

async function answerSite(
  deps: PipelineDeps,
  exchange: Exchange,
  served: ServedSite,
  target: RequestTarget,
): Promise<void> {
  const { site, routes } = served;
  const bodyBytes = Number(exchange.request.headers["content-length"] ?? 0);
  if (bodyBytes > site.limits.body_bytes_max) {
    const text = `The body of a request to this site may have ${site.limits.body_bytes_max} bytes at most.`;
    sendText(exchange, 413, text);
    return;
  }
  const redirect = routes.redirect(target.rawPath);
  if (redirect !== undefined) {
    redirectTo(exchange, served, redirect.status, redirect.to);
    return;
  }
  const isRead = exchange.method === "GET" || exchange.method === "HEAD";
  const { backend } = site;
  if (isRead && (await answerFile(deps, exchange, served, target))) return;
  if (backend !== null) {
    const route = routes.cache(target.rawPath);
    await answerGenerated(deps, exchange, { site, backend, target, routes, route });
  } else if (isRead) await answerAbsent(deps, exchange, served);
  else await answerOtherMethod(exchange, served, target);
}

/** Who came to another port than 80 is where ports are not the usual ones; the others find HTTPS where everybody does. */
function redirectToHttps(
  { tlsPort }: PipelineDeps,
  exchange: Exchange,
  served: ServedSite,
  { rawPath, rawQuery }: RequestTarget,
): void {
  const isOdd = askedPort(exchange) !== undefined && tlsPort !== null && tlsPort !== 443;
  const query = rawQuery === "" ? "" : `?${rawQuery}`;
  const host = isOdd ? `${served.site.host}:${tlsPort}` : served.site.host;
  redirectTo(exchange, served, 308, `https://${host}${rawPath}${query}`);
}

function redirectTo(
  exchange: Exchange,
  { site }: ServedSite,
  status: number,
  location: string,
): void {
  const fields: readonly Field[] = [
    ["Location", location],
    ["Content-Length", "0"],
  ];
  writeHead(exchange, status, withSiteHeaders(fields, site.headers));
  exchange.response.end();
}

/** False: the path names no file, and nothing was sent. */
async function answerFile(
  deps: PipelineDeps,
  exchange: Exchange,
  served: ServedSite,
  { rawPath, rawQuery }: RequestTarget,
): Promise<boolean> {
  const { site, files } = served;
  for (let read = 1; ; read++) {
    // Read before the lookup, as for everything that may become an entry.
    const sourceNo = deps.cache.sourceNo();
    const route = await routeStatic(files, rawPath, site.index);
    if (route.kind === "none") return false;
    if (route.kind === "directory") {
      const query = rawQuery === "" ? "" : `?${rawQuery}`;
      redirectTo(exchange, served, 301, route.path + query);
      return true;
    }
    await using file = route.file;
    if (await answerUnchanged(deps, exchange, served, file, sourceNo)) return true;
    if (read < readsMax) continue;
    const text = "The file is being changed at this moment.";
    sendText(exchange, 503, text, [["Retry-After", "1"]]);
    return true;
  }
}

/** False: the source changed under the read before anything was sent. */
async function answerUnchanged(
  deps: PipelineDeps,
  exchange: Exchange,
  { site, files }: ServedSite,
  file: SiteFile,
  sourceNo: number,
): Promise<boolean> {
  try {
    await answerStatic(deps, exchange, { site, files, file, sourceNo });
    return true;
  } catch (error) {
    if (error instanceof SourceChanged && !exchange.response.headersSent) return false;
    throw error;
  }
}

/** No file and no backend: the single page, the page for what is not there, or a plain 404. */
async function answerAbsent(
  deps: PipelineDeps,
  exchange: Exchange,
  served: ServedSite,
): Promise<void> {
  const { site, files } = served;
  if (site.single_page !== null) {
    const sourceNo = deps.cache.sourceNo();
    await using page = await files.find(site.single_page);
    if (page !== undefined && (await answerUnchanged(deps, exchange, served, page, sourceNo)))
      return;
  }
  if (site.not_found !== null) {
    await using page = await files.find(site.not_found);
    if (page !== undefined) {
      await answerNotFound(exchange, site, page);
      return;
    }
  }
  sendText(exchange, 404, "There is nothing under this address.");
}

async function answerOtherMethod(
  exchange: Exchange,
  { site, files }: ServedSite,
  { rawPath }: RequestTarget,
): Promise<void> {
  const route = await routeStatic(files, rawPath, site.index);
  if (route.kind === "none") {
    sendText(exchange, 404, "There is nothing under this address.");
    return;
  }
  if (route.kind === "file") await route.file[Symbol.asyncDispose]();
  if (exchange.method === "OPTIONS")
    answerOptions(exchange, methodsOfFiles, Object.entries(site.headers.set));
  else {
    const text = `Files are read with GET and HEAD; ${exchange.method} is not for them.`;
    sendText(exchange, 405, text, [["Allow", methodsOfFiles]]);
  }
}
