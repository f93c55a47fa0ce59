// The agents' side of central: one handler for requests below `/agent-api/v1/` and one for the upgrade to the channel.

import { randomBytes, randomInt } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { codeOf } from "../../core/faults.ts";
import { failureFacts, isStoreAway } from "../store/engine/postgres-faults.ts";
import type { CentralTold } from "../../wire/central-told.ts";
import { messageBytesMax } from "../../wire/channel.ts";
import {
  centralTakes,
  takesClasses,
  takesExtensions,
  takesHeader,
  takesHeld,
} from "../../wire/position.ts";
import { agentApiPrefix } from "../../wire/token.ts";
import { agentAnswer, refusal, sendAnswer, type AgentAnswer, type AgentRoute } from "./answers.ts";
import { authenticate } from "./bearer.ts";
import { createBlobRoute, createBlobsMissingRoute, createBlobUploadRoute } from "./blob-routes.ts";
import { createAuthorityRoute, createEnrolRoute, type EnrolDeps } from "./enrol-route.ts";
import type { Hub } from "./hub.ts";
import { createBotSetRoute, createJournalRoute, createSnapshotRoute } from "./journal-routes.ts";
import type { LogEngine } from "./log-engine.ts";
import { createLogIntakeRoute } from "./log-intake.ts";
import type { AgentMetrics } from "./metrics.ts";
import type { PurgeOrders } from "./purge-orders.ts";
import { createPurgeRoute } from "./purge-route.ts";
import { createReleaseRoute } from "./release-route.ts";
import { createReceiptsRoute, createReportsRoute } from "./report-routes.ts";
import { createTokenRoute } from "./token-route.ts";
import type { HostRow } from "../store/content/domains.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";
import type { Blobs } from "../store/objects/object-store.ts";
import type { WakeBus } from "./wake.ts";

export type AgentApiDeps = Pick<EnrolDeps, "transactions" | "authority"> & {
  readonly store: AgentStore;
  readonly blobs: Blobs;
  readonly bus: WakeBus;
  readonly hub: Hub;
  readonly purges: Pick<PurgeOrders<HostRow>, "order">;
  readonly thread: LogEngine;
  readonly metrics: AgentMetrics;
  readonly log: Log;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
  /** Returns the client's address, behind the proxies that are trusted. */
  readonly addressOf: (request: IncomingMessage) => string;
  readonly stop: AbortSignal;
  /** Among how many centrals limits are divided; 1 if absent. */
  readonly centrals?: () => number;
  /** What this central says to others at the store; undefined where there are none. */
  readonly told?: () => CentralTold | undefined;
  readonly randomBytes?: (count: number) => Buffer;
};

export type AgentApi = {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
};

type RouteRow = readonly [name: string, method: string, path: RegExp, route: AgentRoute];

export function createAgentApi(deps: AgentApiDeps): AgentApi {
  const token = createTokenRoute({ randomBytes, ...deps });
  const enrol = createEnrolRoute(deps);
  const authority = createAuthorityRoute(deps);
  const routes = routesOf(deps);
  const answerTo = async (
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ readonly name: string; readonly answer: AgentAnswer | undefined }> => {
    const [pathname = "", query] = (request.url ?? "/").split("?", 2);
    const path = pathname.slice(agentApiPrefix.length);
    if (path === "/token" && request.method === "POST")
      return { name: "token", answer: await token(request) };
    if (path === "/enrol" && request.method === "POST")
      return { name: "enrol", answer: await enrol(request) };
    if (path === "/ca" && request.method === "GET") return { name: "ca", answer: authority() };
    if (path === "/central" && request.method === "GET")
      return { name: "central", answer: toldAnswer(deps.told?.()) };
    const caller = await authenticate(deps.store, request);
    if (!caller.ok) return { name: "unknown", answer: caller.refusal };
    const found = routes.filter(([, , pattern]) => pattern.test(path));
    const row = found.find(([, method]) => method === request.method);
    if (row === undefined) return { name: "unknown", answer: noRoute(found) };
    const [name, , pattern, route] = row;
    using gone = goneSignal(response, deps.stop);
    const call = {
      request,
      response,
      query: new URLSearchParams(query),
      deploymentSiteId: caller.deploymentSiteId,
      signal: gone.signal,
    };
    return { name, answer: await route(call, pattern.exec(path)?.slice(1).map(decode) ?? []) };
  };
  return {
    handle(request, response) {
      response.setHeader(takesHeader, centralTakes);
      const serve = async (): Promise<void> => {
        const { name, answer } = await answerTo(request, response).catch((error: unknown) => ({
          name: "failed",
          answer: defect(deps.log, request, error),
        }));
        if (answer !== undefined) sendAnswer(response, answer);
        const status = String(answer?.status ?? response.statusCode);
        deps.metrics.accel_central_agent_requests_total.inc({ route: name, status });
      };
      serve().catch((error: unknown) => {
        deps.log.error({ err: error }, "an answer could not be sent");
        response.destroy();
      });
    },
    upgrade: createUpgrade(deps),
  };
}

function routesOf(deps: AgentApiDeps): readonly RouteRow[] {
  const { store, blobs, bus, hub } = deps;
  return [
    [
      "journal",
      "GET",
      /^\/journal$/,
      createJournalRoute(store, bus, (id, instance) => hub.pollBegins(id, instance)),
    ],
    ["snapshot", "GET", /^\/snapshot$/, createSnapshotRoute(store, bus)],
    ["bot_set", "GET", /^\/bot-sets\/([^/]+)\/([^/]+)$/, createBotSetRoute(store)],
    ["blobs_missing", "POST", /^\/blobs\/missing$/, createBlobsMissingRoute(blobs)],
    ["blob", "GET", /^\/blobs\/([^/]+)$/, createBlobRoute(blobs, store)],
    ["blob", "HEAD", /^\/blobs\/([^/]+)$/, createBlobRoute(blobs, store)],
    ["blob_upload", "PUT", /^\/blobs\/([^/]+)$/, createBlobUploadRoute(blobs)],
    [
      "receipts",
      "POST",
      /^\/receipts$/,
      createReceiptsRoute(store, (receipts, siteId) => hub.receiptsStored(receipts, siteId)),
    ],
    ["reports", "POST", /^\/reports$/, createReportsRoute(store)],
    ["release", "POST", /^\/release$/, createReleaseRoute(store)],
    ["purges", "POST", /^\/purges$/, createPurgeRoute(store, deps.purges)],
    ["request_logs", "POST", /^\/request-logs$/, createLogIntakeRoute(deps)],
  ];
}

function toldAnswer(told: CentralTold | undefined): AgentAnswer {
  return told === undefined
    ? refusal("not_found", "this central is the only one")
    : { ...agentAnswer(told), headers: { "cache-control": "no-store" } };
}

function noRoute(samePath: readonly RouteRow[]): AgentAnswer {
  if (samePath.length === 0) return refusal("not_found", "the agent API has no such path");
  const allow = samePath.map(([, method]) => method).join(", ");
  return { ...refusal("invalid", `only ${allow}`), status: 405, headers: { allow } };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Twice as long at most: agents do not come back all at once. */
const storeRetryS = 5;

function defect(log: Log, request: IncomingMessage, error: unknown): AgentAnswer {
  const path = (request.url ?? "").split("?")[0];
  const code = codeOf(error);
  if (isStoreAway(error) || code === "OBJECTS_UNREACHABLE") {
    const what = code === "OBJECTS_UNREACHABLE" ? "bucket" : "store";
    log.warn(
      { ...failureFacts(error), method: request.method, path },
      `an agent's request waits for the ${what}`,
    );
    const retryAfterS = storeRetryS + randomInt(storeRetryS);
    return refusal("unavailable", `central's ${what} cannot be had now`, { retryAfterS });
  }
  const id = randomBytes(6).toString("hex");
  log.error({ err: error, error_id: id, method: request.method, path }, "agent request failed");
  return refusal("internal", `central failed; its log says why under ${id}`);
}

/** Aborts when the caller is gone or central stops. */
function goneSignal(
  response: ServerResponse,
  stop: AbortSignal,
): { readonly signal: AbortSignal } & Disposable {
  const gone = new AbortController();
  const abort = (): void => gone.abort();
  response.once("close", abort);
  stop.addEventListener("abort", abort, { once: true });
  if (stop.aborted) abort();
  return {
    signal: gone.signal,
    [Symbol.dispose]: () => {
      response.removeListener("close", abort);
      stop.removeEventListener("abort", abort);
    },
  };
}

function createUpgrade({ store, hub, log }: AgentApiDeps): AgentApi["upgrade"] {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: messageBytesMax,
    perMessageDeflate: false,
  });
  server.on("headers", (headers) => headers.push(`${takesHeader}: ${centralTakes}`));
  return (request, socket, head) => {
    const torn = (): unknown => socket.destroy();
    socket.on("error", torn);
    const accept = async (): Promise<void> => {
      const path = (request.url ?? "").split("?")[0];
      if (path !== `${agentApiPrefix}/channel`)
        return refuse(socket, refusal("not_found", "no channel here"));
      const caller = await authenticate(store, request);
      if (!caller.ok) return refuse(socket, caller.refusal);
      const { deploymentSiteId, shutCount } = caller;
      if (!hub.hasRoom(deploymentSiteId))
        return refuse(
          socket,
          refusal("unavailable", "too many channels of this deployment site", { retryAfterS: 30 }),
        );
      socket.removeListener("error", torn);
      const takes = request.headers[takesHeader];
      server.handleUpgrade(request, socket, head, (webSocket) =>
        hub.accept(webSocket, {
          deploymentSiteId,
          shutCount,
          takesExtensions: takesExtensions(takes),
          takesClasses: takesClasses(takes),
          takesHeld: takesHeld(takes),
        }),
      );
    };
    accept().catch((error: unknown) => refuse(socket, defect(log, request, error)));
  };
}

/** Answers an upgrade that is refused. It is written by hand, because there is no response object. */
function refuse(socket: Duplex, { status, body, headers }: AgentAnswer): void {
  const text = JSON.stringify(body);
  const lines = Object.entries({
    ...headers,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n${text}`);
}
