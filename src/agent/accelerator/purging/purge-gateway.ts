// Answers the purge requests of content management systems, before anything else is asked of a request: no
// verdict, no redirect, no file and no limit of visitors stands before it, for their user agents are those of
// bots. Where nobody may purge, the pipeline answers, which refuses such methods.
//
// Who asks is told by the address of the connection or what a trusted proxy says, or by a key. What may be
// cleared follows from that alone: the domains of the key, else the host that is named.

import type { ClientAddresses } from "../../../core/http/client-address.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import { parseTarget } from "../../../core/http/request-path.ts";
import {
  cloudflareAnswer,
  cloudflareBodyBytesMax,
  isCloudflarePurge,
  readCloudflarePurge,
} from "../../../core/purge/cloudflare-purge.ts";
import { purgeMethods, readPurge, type PurgeRead } from "../../../core/purge/purge-dialects.ts";
import { countItems, scopeOf, sharesOf, type PurgeScope } from "../../../core/purge/purge-items.ts";
import { keyOf, namesSite } from "../../../core/purge/purge-rights.ts";
import { headFault } from "../../../core/serving/request-check.ts";
import { writeHead } from "../doors/answer.ts";
import type { Exchange } from "../doors/exchange.ts";
import type { HostTable } from "../pool/host-table.ts";
import type { StagedStates } from "../pool/staged-states.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import type { PurgeTeller } from "./purge-teller.ts";

export type PurgeGatewayDeps = {
  readonly states: Pick<StagedStates, "current">;
  readonly clients: Pick<ClientAddresses, "ofRequest">;
  readonly purges: Pick<PurgeTeller, "clear">;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
};

/** The most domains of one request; each is a clear of its own. */
const scopesMax = 100;
/** The time that the body of a call may take. */
const bodyMs = 10_000;
const retryAfterS = 1;

type Outcome = "cleared" | "denied" | "refused" | "failed";
type Said = {
  readonly status: number;
  readonly outcome: Outcome;
  readonly message: string;
  readonly done?: {
    readonly ids: readonly string[];
    readonly items: number;
    readonly matched: number;
  };
};

/** A purge request, and what its sender may clear. */
type Asked = {
  readonly exchange: Exchange;
  readonly table: HostTable;
  readonly isCloudflare: boolean;
  /** The host that the request names, if it is served. */
  readonly host: string | undefined;
  readonly domain: string | undefined;
  readonly scopes: readonly PurgeScope[];
  /** That of them in which the host lies. */
  readonly named: PurgeScope | undefined;
};

/**
 * Wraps `answer`, which answers every request that is no purge request of a domain that takes some. Without
 * `purges` nobody may purge.
 */
export function beforeVisitors(
  deps: Omit<PurgeGatewayDeps, "purges"> & {
    readonly purges: PurgeGatewayDeps["purges"] | undefined;
  },
  answer: (exchange: Exchange) => Promise<void>,
): (exchange: Exchange) => Promise<void> {
  const { purges } = deps;
  if (purges === undefined) return answer;
  const gateway = new PurgeGateway({ ...deps, purges });
  return (exchange) => gateway.take(exchange) ?? answer(exchange);
}

class PurgeGateway {
  readonly #deps: PurgeGatewayDeps;

  constructor(deps: PurgeGatewayDeps) {
    this.#deps = deps;
  }

  /** Undefined: it is not answered here. */
  take(exchange: Exchange): Promise<void> | undefined {
    const { method, url } = exchange;
    const isCloudflare = method === "POST" && isCloudflarePurge(method, url);
    if (!isCloudflare && !purgeMethods.has(method)) return undefined;
    if (headFault(exchange) !== undefined) return undefined;
    const asked = this.#find(exchange, isCloudflare);
    return asked === undefined ? undefined : this.#answer(asked);
  }

  /** Undefined: the host takes no purge requests, and no key names another. */
  #find(exchange: Exchange, isCloudflare: boolean): Asked | undefined {
    const { states, clients } = this.#deps;
    const { peer } = exchange.connection;
    if (peer !== undefined) exchange.client = clients.ofRequest(peer, exchange.fields);
    const authority =
      parseTarget(exchange.url)?.authority ?? fieldValue(exchange.fields, "host") ?? "";
    const table = states.current();
    const found = table.route(authority);
    const served = found.kind === "served" ? found : undefined;
    const host = served?.host.name;
    const rights = table.purgeRights;
    const key = keyOf(exchange.fields);
    const byKey = key === undefined ? [] : rights.ofKey(key);
    const isOpen = host !== undefined && rights.isOpen(host);
    if (byKey.length === 0 && !isOpen) return undefined;
    exchange.authority = authority;
    const address = exchange.client?.text;
    const byAddress =
      host === undefined || address === undefined ? undefined : rights.ofAddress(host, address);
    const scopes = byKey.length > 0 || byAddress === undefined ? byKey : [byAddress];
    const domain = scopes[0]?.domain ?? served?.domain;
    exchange.domain = domain ?? null;
    const named = scopeOf(host, scopes, (name) => table.domainOf(name));
    return { exchange, table, isCloudflare, host, domain, scopes, named };
  }

  async #answer(asked: Asked): Promise<void> {
    const { exchange, domain = "none" } = asked;
    const said = await this.#carryOut(asked);
    this.#deps.metrics.accel_agent_purge_requests_total.inc({ domain, outcome: said.outcome });
    if (said.outcome !== "cleared")
      this.#deps.problems.tell("warn", domain, `a purge request was ${said.outcome}`, said.message);
    if (exchange.isGone || exchange.response.headersSent) return;
    const { fields, body } = answerOf(said, asked);
    writeHead(exchange, said.status, fields);
    exchange.response.end(Buffer.from(body));
  }

  async #carryOut(asked: Asked): Promise<Said> {
    const { exchange, table, scopes, named } = asked;
    if (scopes.length === 0) return said(403, "denied", denied(exchange));
    if (isOfAnother(asked)) return said(403, "denied", deniedHost(exchange));
    if (scopes.length > scopesMax)
      return said(400, "refused", `the key is one of more than ${scopesMax} domains`);
    const read = await this.#read(asked);
    if (read.kind === "refused") return said(400, "refused", read.message);
    const reach = { scopes, ...(named !== undefined && { named }) };
    const shares = sharesOf(read.items, reach, (host) => table.domainOf(host));
    if (typeof shares === "string")
      return said(400, "refused", `${JSON.stringify(shares)} is no host that you may purge`);
    const outcome = await this.#deps.purges.clear(shares);
    if (outcome.kind === "refused") return said(400, "refused", outcome.message);
    if (outcome.kind === "failed") return said(503, "failed", outcome.message);
    const { ids, matched } = outcome;
    return {
      status: 200,
      outcome: "cleared",
      message: "",
      done: { ids, matched, items: countItems(read.items) },
    };
  }

  async #read({ exchange, isCloudflare, host, named }: Asked): Promise<PurgeRead> {
    if (isCloudflare) {
      const body = await readBody(exchange);
      return body === undefined
        ? refused(`the body has more than ${cloudflareBodyBytesMax} bytes, or did not come`)
        : readCloudflarePurge(body);
    }
    // Over HTTP/2 an empty body may follow the head.
    if ((await readBody(exchange)) !== "") return refused("a purge request has no body");
    const target = parseTarget(exchange.url);
    if (target === undefined) return refused("the request target is no path");
    const { method, fields } = exchange;
    const { rawPath, rawQuery } = target;
    const url = rawQuery === "" ? rawPath : `${rawPath}?${rawQuery}`;
    return readPurge({ method, url, fields, host: named === undefined ? null : (host ?? null) });
  }
}

/**
 * Returns whether the request names a site that its key may not purge. Plugins for Cloudflare name Cloudflare, or whatever stands in its place; the site of somebody
 * else they do not.
 */
function isOfAnother({ exchange, isCloudflare, host, named }: Asked): boolean {
  if (named !== undefined || !namesSite(exchange.authority)) return false;
  return !isCloudflare || host !== undefined;
}

function deniedHost({ authority, client }: Exchange): string {
  return `neither a key of this request nor its address ${client?.text ?? ""} may purge ${JSON.stringify(authority)}, which it names in Host (purge.addresses, purge.keys)`;
}

function denied({ client }: Exchange): string {
  return `neither a key of this request nor its address ${client?.text ?? ""} may purge here (purge.addresses, purge.keys)`;
}

function refused(message: string): PurgeRead {
  return { kind: "refused", message };
}

function said(status: number, outcome: Outcome, message: string): Said {
  return { status, outcome, message };
}

function answerOf(
  { status, message, done }: Said,
  { isCloudflare }: Asked,
): { readonly fields: readonly Field[]; readonly body: string } {
  const [id = null] = done?.ids ?? [];
  const body = isCloudflare
    ? cloudflareAnswer(status, message, id)
    : `${JSON.stringify(
        done === undefined
          ? { error: message }
          : { clear_id: id, clears: done.ids.length, items: done.items, matched: done.matched },
      )}\n`;
  const fields: readonly Field[] = [
    ["Content-Type", "application/json"],
    ["Content-Length", `${Buffer.byteLength(body)}`],
    ["Cache-Control", "no-store"],
    ...(status === 503 ? ([["Retry-After", `${retryAfterS}`]] as const) : []),
  ];
  return { fields, body };
}

/** Undefined: it is too large, it broke off, or it took too long. */
async function readBody(exchange: Exchange): Promise<string | undefined> {
  const { body } = exchange;
  if (!exchange.hasBody || body === undefined) return "";
  if (exchange.awaitsContinue) exchange.response.writeContinue();
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
  const pieces: Buffer[] = [];
  let bytes = 0;
  const onData = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes > cloudflareBodyBytesMax) resolve(undefined);
    else pieces.push(piece);
  };
  const leave = (): void => resolve(undefined);
  const late = setTimeout(leave, bodyMs);
  body.on("data", onData);
  body.once("end", () => resolve(Buffer.concat(pieces)));
  body.once("error", leave);
  exchange.stop.addEventListener("abort", leave);
  const whole = await promise;
  clearTimeout(late);
  exchange.stop.removeEventListener("abort", leave);
  body.off("data", onData);
  if (whole === undefined) exchange.endConnection();
  return whole?.toString("utf8");
}
