// The customer API as one request listener: route, authenticate, decode, authorize and call (endpoint),
// encode, then one line in the log.

import type { IncomingMessage, ServerResponse } from "node:http";
import { orOverdue } from "../../base/http-listener.ts";
import type { Log } from "../../base/log.ts";
import { createMetrics, type MetricTable, type Registry } from "../../base/metrics.ts";
import type { Json } from "../../core/journal/canonical-json.ts";
import { codeOf } from "../../core/faults.ts";
import { failureFacts } from "../store/engine/postgres-faults.ts";
import { ClientAddresses } from "../../core/http/client-address.ts";
import { invalid, isGood, problem, type Answer } from "./http/answer.ts";
import { createAuthenticate, type Authenticate } from "./http/authenticate.ts";
import { beyondToken } from "./http/beyond-token.ts";
import { resourceEndpoints } from "./resources.ts";
import { centralStops, failureAnswer, overdueAnswer } from "./http/failure-answer.ts";
import { answerOnce, idempotentCall } from "./http/idempotent-call.ts";
import { queryFault, queryOf } from "./http/query.ts";
import { createContext, paramOf } from "./http/request-context.ts";
import { readFields } from "./http/request-fields.ts";
import { visitorAddress, endedFacts, requestIds, statusOf } from "./http/request-line.ts";
import { respond } from "./http/respond.ts";
import { createRoute, type Routed } from "./http/router.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import type { IdempotentCall } from "../store/engine/idempotency.ts";

export type CustomerApiSettings = {
  /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
};

export type CustomerApiDeps = Omit<ResourceDeps, "settings"> & {
  readonly store: Transactions;
  readonly settings: CustomerApiSettings & ResourceDeps["settings"];
  readonly log: Log;
  readonly registry: Registry;
  readonly stop?: AbortSignal;
  /** When it aborts, whoever waits still is answered at once. */
  readonly late?: { readonly signal: AbortSignal };
};

export const apiMetrics = {
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

/** The methods that have a label each; all others share one. */
const countedMethods = new Set(["GET", "HEAD", "POST", "PUT", "DELETE"]);
const pathCharsLogged = 500;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Creates the customer API. It never throws, and leaves no request unanswered whose client is there. */
export function createCustomerApi(deps: CustomerApiDeps): Listener {
  const { log, now, randomBytes } = deps;
  const route = createRoute(resourceEndpoints(deps));
  const authenticate = createAuthenticate({
    ...deps,
    onFailure: (error) => log.debug({ err: error }, "the use of a token could not be noted"),
  });
  const clients = new ClientAddresses(deps.settings.trustedProxies, "x-forwarded-for");
  const nextRequestId = requestIds(randomBytes);

  const work = async (asked: Asked, routed: Routed): Promise<void> => {
    const answer = await serve(deps, authenticate, routed, asked);
    const { request, response } = asked;
    if (answer !== undefined && !response.writableEnded) await respond(request, response, answer);
  };
  const answerRequest = async (asked: Asked, routed: Routed): Promise<void> => {
    const { request, response, requestId } = asked;
    try {
      const overdue = await orOverdue(work(asked, routed), response, deps.late?.signal);
      if (overdue === undefined) return;
      log.warn({ request_id: requestId, reason: overdue }, "a request is answered before its time");
      response.shouldKeepAlive = false;
      // Node tells a request that was answered nothing more: whoever reads its body would wait for the rest.
      request.socket.once("close", () => request.destroy());
      await respond(request, response, overdueAnswer(overdue, requestId, request));
    } catch (error) {
      const failed = failureAnswer(error, requestId, request.method);
      if (failed.status === 503)
        log.warn(
          { ...failureFacts(error), request_id: requestId },
          codeOf(error) === "OBJECTS_UNREACHABLE"
            ? "a request waits for the bucket"
            : "a request waits for the store",
        );
      else log.error({ err: error, request_id: requestId }, "a request of the customer API failed");
      if (response.headersSent) response.destroy();
      else await respond(request, response, failed);
    }
  };
  const tell = createTell(deps);

  return (request, response) => {
    const requestId = nextRequestId();
    response.setHeader("x-request-id", requestId);
    response.setHeader("cache-control", "no-store");
    const startedMs = now().getTime();
    const routed = route(request.method ?? "", request.url ?? "");
    const address = visitorAddress(clients, request);
    const asked: Asked = { request, response, requestId, address, actor: undefined };
    answerRequest(asked, routed)
      .catch((error: unknown) => {
        log.error({ err: error, request_id: requestId }, "an answer could not be sent");
        response.destroy();
      })
      .finally(() => tell(asked, routed, startedMs))
      .catch((error: unknown) => log.error({ err: error }, "a request could not be logged"));
  };
}

type Tell = (asked: Asked, routed: Routed, startedMs: number) => void;

/** Makes the function that writes a request's line in the log, and its part of the metrics. */
function createTell({ log, now, registry }: CustomerApiDeps): Tell {
  const metrics = createMetrics(apiMetrics, registry);
  return (asked, routed, startedMs) => {
    const { request, response, actor } = asked;
    const ms = now().getTime() - startedMs;
    const method = countedMethods.has(request.method ?? "") ? (request.method ?? "") : "other";
    const path = routed.kind === "found" ? routed.endpoint.path : "none";
    const status = statusOf(response);
    metrics.accel_central_api_requests_total.inc({
      method,
      route: path,
      status: String(status ?? "none"),
    });
    metrics.accel_central_api_request_seconds.observe({ method, route: path }, ms / 1_000);
    log.info(
      {
        method,
        path: (request.url ?? "").split("?", 1)[0]?.slice(0, pathCharsLogged),
        route: path,
        status,
        ms,
        address: asked.address,
        user_id: actor?.userId,
        token_id: actor?.tokenId ?? undefined,
        customer_id: actor?.customerId,
        ...endedFacts(asked),
      },
      "request",
    );
  };
}

type Asked = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly address: string;
  actor: Actor | undefined;
};

/** Answers a request. Returns undefined if the client left before its request was whole. */
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
    return problem(405, `this path takes ${allowed}`, { headers: { allow: allowed } });
  }
  const { endpoint, params } = routed;
  const known = await authenticate(endpoint.auth, request, address);
  if (!known.ok) return known.answer;
  const { actor, credentials } = known;
  asked.actor = actor;
  const beyond = beyondToken(endpoint, actor);
  if (beyond !== undefined) return beyond;
  const strange = queryFault(endpoint, queryOf(request.url ?? ""));
  if (strange !== undefined) return strange;
  const found =
    endpoint.body === undefined || endpoint.takesStream !== undefined
      ? { ok: true as const, value: {} }
      : await readFields(request, endpoint);
  if (!found.ok) return found.answer;
  const accepted = endpoint.accept(found.value, paramOf(params));
  if (!accepted.ok) return accepted.answer;
  const { body } = accepted;
  const onceOf = (given: Json): IdempotentCall | undefined | string =>
    idempotentCall(request, { actor, address }, endpoint, params, given);
  const once = onceOf(body);
  if (typeof once === "string") return invalid([{ path: "Idempotency-Key", message: once }]);
  const gone = goneSignal(response, deps.stop);
  const context = createContext(deps, {
    request,
    requestId,
    endpoint,
    params,
    address,
    actor,
    credentials,
    body,
    once: (given) => {
      const call = onceOf(given);
      return typeof call === "string" ? undefined : call;
    },
    gone,
  });
  const repeated =
    once === undefined || endpoint.takesStream !== undefined
      ? undefined
      : await context.read(async (work) => answerOnce(work, once));
  const answer = repeated ?? (await accepted.handle(context, actor));
  return isGood(answer) ? endpoint.finish(context, actor, answer) : answer;
}

/**
 * Returns the signal that ends waiting: when the client left, or central stops, the answer is what is known
 * by then. `AbortSignal.any` is not used, so that nothing of a request stays with the other signal.
 */
function goneSignal(response: ServerResponse, stop: AbortSignal | undefined): AbortSignal {
  const gone = new AbortController();
  const stopped = (): void => gone.abort(centralStops);
  stop?.addEventListener("abort", stopped, { once: true });
  if (stop?.aborted === true) stopped();
  // The client left while it was being authenticated; there will be no further "close".
  if (response.closed) {
    stop?.removeEventListener("abort", stopped);
    gone.abort();
    return gone.signal;
  }
  response.once("close", () => {
    stop?.removeEventListener("abort", stopped);
    if (!response.writableFinished) gone.abort(); // Otherwise nobody waits any more, and the error that an abort makes is expensive.
  });
  return gone.signal;
}
