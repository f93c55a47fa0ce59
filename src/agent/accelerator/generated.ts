// What an origin makes: answered from the cache where a stored response may be used, else asked for, passed on and stored where it may be.

import type { BackendSettings, SiteConfig } from "../../core/effective-devlove.ts";
import type { CacheRoute } from "../../core/site-routes.ts";
import { parseCacheControl } from "../../core/cache-control.ts";
import { precondition } from "../../core/conditional.ts";
import { formatHttpDate } from "../../core/http-date.ts";
import { normalAcceptEncoding, planStore, variantOf } from "../../core/http-cache.ts";
import { fieldValue, withoutFields, type Field } from "../../core/http-fields.ts";
import type { RequestTarget } from "../../core/request-path.ts";
import { sendText } from "./answer.ts";
import type { EntryKey, ResponseCache } from "./cache-port.ts";
import { answerEntry, lookUp, validatorsOf } from "./entry-answer.ts";
import type { Exchange } from "./exchange.ts";
import { Fill } from "./fill.ts";
import { isDelimited, isReadable, passedFields, relay } from "./origin-answer.ts";
import type { OriginFailure } from "./origin-errors.ts";
import type { OriginAnswer, OriginPools } from "./origin-pools.ts";
import { originFields } from "./origin-request.ts";
import type { Clock } from "./ports.ts";
import type { ProblemLog } from "./problem-log.ts";
import { BodyTooLarge, requestBody } from "./request-body.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

export type GeneratedDeps = {
  readonly cache: ResponseCache;
  readonly origins: OriginPools;
  readonly clock: Clock;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
};

export type GeneratedRequest = {
  readonly site: SiteConfig;
  readonly backend: BackendSettings;
  readonly target: RequestTarget;
  readonly route: CacheRoute;
};

const unsafe = (method: string): boolean => !["GET", "HEAD", "OPTIONS", "TRACE"].includes(method);
const conditions: ReadonlySet<string> = new Set(["if-none-match", "if-modified-since"]);

export async function answerGenerated(
  deps: GeneratedDeps,
  exchange: Exchange,
  request: GeneratedRequest,
): Promise<void> {
  const { site, target, route } = request;
  // Read before the lookup: what is stored later must not be older than this number says.
  const sourceNo = deps.cache.sourceNo();
  const key: EntryKey = {
    domain: site.main_domain,
    host: site.host,
    kind: "generated",
    path: target.rawPath,
    query: route.normalizeQuery(target.rawQuery),
  };
  const reason = passReason(exchange, route);
  const asked = originFields(exchange, site.host, request.backend);
  if (reason !== undefined) {
    exchange.cache = "pass";
    await pass(deps, exchange, request, { key, asked, status: `fwd=${reason}` });
    return;
  }
  const fields = normalized(exchange, asked);
  const found = lookUp(deps.cache, key, fields, deps.clock.ageMs());
  if (found.kind === "usable") {
    const { ageMs: nowMs } = deps.clock;
    const options = { cache: deps.cache, nowMs };
    if (await answerEntry(exchange, site.headers, found.entry, options)) return;
  }
  exchange.cache = "miss";
  if (parseCacheControl(fieldValue(exchange.fields, "cache-control")).has("only-if-cached")) {
    sendText(exchange, 504, "Nothing is stored for this request, and it asked for nothing else.");
    return;
  }
  const status = `fwd=${found.kind === "stale" ? "stale" : "miss"}`;
  await fetchAndStore(deps, exchange, request, { key, asked: fields, status, sourceNo });
}

/** Why the cache is not even asked, in the words of RFC 9211. */
function passReason({ method, fields, hasBody }: Exchange, route: CacheRoute): string | undefined {
  if (method !== "GET" && method !== "HEAD") return "method";
  if (route.settings.bypass) return "bypass";
  // A body of a GET is no part of the key; conditions of writers are for the origin.
  const forOrigin = ["authorization", "if-match", "if-unmodified-since"];
  return hasBody || forOrigin.some((name) => fieldValue(fields, name) !== undefined)
    ? "request"
    : undefined;
}

/**
 * A fetch that may be stored asks for the whole and in one of few codings; the visitor's own conditions are judged here. A range is left
 * to the origin: its 206 is passed on and not stored.
 */
function normalized(exchange: Exchange, asked: readonly Field[]): readonly Field[] {
  const dropped = new Set(["accept-encoding"]);
  if (fieldValue(exchange.fields, "range") === undefined)
    for (const name of conditions) dropped.add(name);
  const codings = normalAcceptEncoding(fieldValue(asked, "accept-encoding"));
  const rest = withoutFields(asked, dropped);
  return codings === "" ? rest : [...rest, ["Accept-Encoding", codings]];
}

type Ask = { readonly key: EntryKey; readonly asked: readonly Field[]; readonly status: string };

async function pass(
  deps: GeneratedDeps,
  exchange: Exchange,
  request: GeneratedRequest,
  { key, asked, status }: Ask,
): Promise<void> {
  const answer = await askOrigin(deps, exchange, request, asked);
  if (answer === undefined) return;
  using _ = ending(answer, deps, exchange);
  // RFC 9111 §4.4. Before the head: whoever has the answer to a change must not be shown the old state afterwards.
  if (unsafe(exchange.method) && answer.status < 400 && !request.route.settings.bypass)
    await invalidate(deps, key);
  await relay(exchange, request.site, answer, {
    status: answer.status,
    fields: passedFields(answer),
    cacheStatus: status,
    fill: undefined,
  });
}

/** The origin has acted: the visitor is told so whether or not the index could be. */
async function invalidate({ cache, problems }: GeneratedDeps, key: EntryKey): Promise<void> {
  try {
    await cache.invalidate(key);
  } catch (error) {
    problems.tell("warn", key.domain, "invalidation failed", error);
  }
}

async function fetchAndStore(
  deps: GeneratedDeps,
  exchange: Exchange,
  request: GeneratedRequest,
  { key, asked, status, sourceNo }: Ask & { readonly sourceNo: number },
): Promise<void> {
  const answer = await askOrigin(deps, exchange, request, asked);
  if (answer === undefined) return;
  using _ = ending(answer, deps, exchange);
  const { settings } = request.route;
  const plan = planStore(asked, answer, settings);
  const stores = plan.store && exchange.method === "GET" && isDelimited(answer);
  const passed = passedFields(answer);
  const cookieless = stores ? withoutFields(passed, new Set(["set-cookie"])) : passed;
  const isNotModified =
    answer.status === 200 && precondition(exchange.fields, validatorsOf(passed)) === "not-modified";
  const fill = stores
    ? new Fill(deps.cache.begin(key), {
        status: answer.status,
        headers: storedFields(cookieless, answer),
        mime: (fieldValue(passed, "content-type") ?? "").replace(/;.*$/, "").trim().toLowerCase(),
        // The scheme is a part of what was asked for (RFC 9111 §2), and the origin's links are made of it.
        vary: variantOf([...plan.varyNames, "x-forwarded-proto"], asked),
        storedAtMs: Math.floor(answer.receivedAtMs),
        initialAgeS: plan.initialAgeS,
        freshForS: plan.freshForS,
        sourceNo,
        digest: null,
      })
    : undefined;
  try {
    await relay(exchange, request.site, answer, {
      status: isNotModified ? 304 : answer.status,
      fields: isNotModified ? withoutFields(cookieless, bodyFields) : cookieless,
      cacheStatus: stores ? `${status}; stored` : status,
      fill,
    });
  } finally {
    fill?.abort();
  }
}

const bodyFields: ReadonlySet<string> = new Set([
  "content-length",
  "content-type",
  "content-encoding",
]);
/** Age is reckoned anew and the length is the body's. */
const unstored: ReadonlySet<string> = new Set(["content-length", "age"]);

function storedFields(fields: readonly Field[], { receivedAtMs }: OriginAnswer): readonly Field[] {
  const stored = withoutFields(fields, unstored);
  return fieldValue(stored, "date") === undefined
    ? [...stored, ["Date", formatHttpDate(receivedAtMs)]]
    : stored;
}

/** Frees the origin's connection and takes the time it needed, however the answer ends. */
function ending(answer: OriginAnswer, deps: GeneratedDeps, exchange: Exchange): Disposable {
  return {
    [Symbol.dispose]: () => {
      exchange.originMs = deps.clock.ageMs() - answer.requestedAtMs;
      if (!answer.body.readableEnded) answer.body.on("error", () => {}).destroy();
    },
  };
}

/** Undefined: there is none, and the visitor has been told. */
async function askOrigin(
  { origins, clock, metrics, problems }: GeneratedDeps,
  exchange: Exchange,
  { site, backend, target }: GeneratedRequest,
  asked: readonly Field[],
): Promise<OriginAnswer | undefined> {
  const domain = site.main_domain;
  const { rawPath, rawQuery } = target;
  const body = requestBody(exchange, site.limits.body_bytes_max);
  const length = fieldValue(exchange.fields, "content-length");
  const startedMs = clock.steadyMs();
  metrics.accel_agent_origin_requests_total.inc({ domain });
  const outcome = await origins.ask(backend, {
    method: exchange.method,
    path: hasQuery(exchange, target) ? `${rawPath}?${rawQuery}` : rawPath,
    fields: length === undefined ? asked : [...asked, ["Content-Length", length]],
    body: body?.read,
    stop: exchange.stop,
  });
  const tookMs = clock.steadyMs() - startedMs;
  metrics.accel_agent_origin_duration_seconds.observe({ domain }, tookMs / 1_000);
  exchange.originMs = tookMs;
  if (outcome.ok && isReadable(outcome.answer)) return outcome.answer;
  if (outcome.ok) outcome.answer.body.on("error", () => {}).destroy();
  if (exchange.stop.aborted) return undefined;
  if (body?.isTooLarge() === true) {
    sendText(exchange, 413, new BodyTooLarge(site.limits.body_bytes_max).message);
    return undefined;
  }
  metrics.accel_agent_origin_errors_total.inc({ domain });
  const reason = outcome.ok ? "its transfer coding is not known" : outcome.failure.reason;
  problems.tell("warn", domain, "origin gave no answer", reason);
  answerFailure(exchange, outcome.ok ? "broken" : outcome.failure.kind);
  return undefined;
}

/** `/a?` is not `/a` to every origin. */
function hasQuery({ request }: Exchange, { rawQuery }: RequestTarget): boolean {
  return rawQuery !== "" || (request.url ?? "").includes("?");
}

const failureAnswers: Readonly<Record<OriginFailure["kind"], readonly [number, string]>> = {
  unreachable: [502, "The server behind this site cannot be reached."],
  broken: [502, "The server behind this site gave no usable answer."],
  timeout: [504, "The server behind this site did not answer in time."],
  busy: [503, "The server behind this site has too many requests to answer."],
};

function answerFailure(exchange: Exchange, kind: OriginFailure["kind"]): void {
  const [status, text] = failureAnswers[kind];
  sendText(exchange, status, text, status === 503 ? [["Retry-After", "1"]] : []);
}
