// The customer API as one request listener: route, authenticate, decode, authorize and call (endpoint), encode; then one line in the log.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../../base/log.ts";
import { createMetrics, type MetricTable, type Registry } from "../../base/metrics.ts";
import type { Json } from "../../core/canonical-json.ts";
import { ClientAddresses } from "../../core/client-address.ts";
import { fieldsOfRaw } from "../../core/http-fields.ts";
import { invalid, isGood, problem, type Answer } from "./answer.ts";
import { createAuthenticate, type Authenticate } from "./authenticate.ts";
import { resourceEndpoints, type ResourceDeps } from "./resources.ts";
import { answerOnce, idempotentCall } from "./idempotent-call.ts";
import { createContext, paramOf } from "./request-context.ts";
import { readFields } from "./request-fields.ts";
import { respond } from "./respond.ts";
import { createRoute, type Routed } from "./router.ts";
import type { Actor, CustomerStore, IdempotentCall } from "./unit.ts";

export type CustomerApiSettings = {
  /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
};

export type CustomerApiDeps = Omit<ResourceDeps, "settings"> & {
  readonly store: CustomerStore;
  readonly settings: CustomerApiSettings & ResourceDeps["settings"];
  readonly log: Log;
  readonly registry: Registry;
};

const metricTable = {
  accel_central_api_requests_total: {
    kind: "counter",
    help: "Requests of the customer API by route and status.",
    labels: ["method", "route", "status"],
  },
  accel_central_api_request_seconds: {
    kind: "histogram",
    help: "Time from a request of the customer API to its answer.",
    labels: ["method", "route"],
  },
} as const satisfies MetricTable;

/** Methods beyond these are one label. */
const countedMethods = new Set(["GET", "HEAD", "POST", "PUT", "DELETE"]);
const pathCharsLogged = 500;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Never throws and never leaves a request unanswered whose client is there. */
export function createCustomerApi(deps: CustomerApiDeps): Listener {
  const { log, now, randomBytes } = deps;
  const route = createRoute(resourceEndpoints(deps));
  const authenticate = createAuthenticate(deps);
  const clients = new ClientAddresses(deps.settings.trustedProxies, "x-forwarded-for");
  const metrics = createMetrics(metricTable, deps.registry);

  const answerRequest = async (
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
  ): Promise<void> => {
    const startedMs = now().getTime();
    const routed = route(request.method ?? "", request.url ?? "");
    const address = addressOf(clients, request);
    const asked: Asked = { request, response, requestId, address, actor: undefined };
    try {
      const answer = await serve(deps, authenticate, routed, asked);
      if (answer !== undefined) await respond(request, response, answer);
    } catch (error) {
      log.error({ err: error, request_id: requestId }, "a request of the customer API failed");
      if (response.headersSent) response.destroy();
      else
        await respond(
          request,
          response,
          problem(500, "central failed; its log tells more under this id", { requestId }),
        );
    }
    const ms = now().getTime() - startedMs;
    const method = countedMethods.has(request.method ?? "") ? (request.method ?? "") : "other";
    const path = routed.kind === "found" ? routed.endpoint.path : "none";
    const status = String(response.statusCode);
    metrics.accel_central_api_requests_total.inc({ method, route: path, status });
    metrics.accel_central_api_request_seconds.observe({ method, route: path }, ms / 1_000);
    log.info(
      {
        method,
        path: (request.url ?? "").split("?", 1)[0]?.slice(0, pathCharsLogged),
        status: response.statusCode,
        ms,
        user_id: asked.actor?.userId,
        request_id: requestId,
      },
      "request",
    );
  };

  return (request, response) => {
    const requestId = Buffer.from(randomBytes(8)).toString("hex");
    response.setHeader("x-request-id", requestId);
    response.setHeader("cache-control", "no-store");
    answerRequest(request, response, requestId).catch((error: unknown) => {
      log.error({ err: error, request_id: requestId }, "an answer could not be sent");
      response.destroy();
    });
  };
}

type Asked = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly address: string;
  actor: Actor | undefined;
};

/** Undefined when the client left before its request was whole. */
async function serve(
  deps: CustomerApiDeps,
  authenticate: Authenticate,
  routed: Routed,
  asked: Asked,
): Promise<Answer | undefined> {
  const { request, response, address, requestId } = asked;
  if (routed.kind === "no-path") return problem(404, "there is no such path");
  if (routed.kind === "no-method") {
    const allowed = routed.allowed.join(", ");
    return problem(405, `this path knows ${allowed}`, { headers: { allow: allowed } });
  }
  const { endpoint, params } = routed;
  const known = await authenticate(endpoint.auth, request.headers.authorization, address);
  if (!known.ok) return known.answer;
  const { actor } = known;
  asked.actor = actor;
  const found =
    endpoint.body === undefined || endpoint.takesStream
      ? { ok: true as const, value: {} }
      : await readFields(request, endpoint);
  if (!found.ok) return found.answer;
  const accepted = endpoint.accept(found.value, paramOf(params));
  if (!accepted.ok) return accepted.answer;
  const { body } = accepted;
  const scope = actor === undefined ? `address:${address}` : `user:${actor.userId}`;
  const onceOf = (given: Json): IdempotentCall | undefined | "unusable" =>
    idempotentCall(request, scope, endpoint, params, given);
  const once = onceOf(body);
  if (once === "unusable")
    return invalid([
      { path: "Idempotency-Key", message: "must be 1 to 255 visible ASCII characters" },
    ]);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const context = createContext(deps, {
    request,
    requestId,
    endpoint,
    params,
    address,
    actor,
    body,
    once: (given) => {
      const call = onceOf(given);
      return call === "unusable" ? undefined : call;
    },
    gone: gone.signal,
  });
  const repeated =
    once === undefined || endpoint.takesStream
      ? undefined
      : await context.read(async (unit) => answerOnce(unit, once));
  const answer = repeated ?? (await accepted.handle(context, actor));
  return isGood(answer) ? endpoint.finish(context, actor, answer) : answer;
}

function addressOf(clients: ClientAddresses, request: IncomingMessage): string {
  const peer = clients.ofPeer(request.socket.remoteAddress);
  const fields = fieldsOfRaw(request.rawHeaders);
  return peer === undefined ? "unknown" : clients.ofRequest(peer, fields).text;
}
