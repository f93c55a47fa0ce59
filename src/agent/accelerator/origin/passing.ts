// Requests that the cache has no part in: passed on with their body, and what they change invalidated (RFC 9111 §4.4).

import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import { withEdits } from "../../../core/http/header-edits.ts";
import { passSaid, type PassReason } from "../../../core/http/http-pass.ts";
import { isWrite } from "../../../core/http/http-write.ts";
import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import type { SiteRoutes } from "../../../core/serving/site-routes.ts";
import type { EntryKey } from "../../cache/entry.ts";
import type { RequestBodies, RequestBody } from "../bodies/request-bodies.ts";
import { dropStored } from "../cached/fill.ts";
import type { FlightDeps } from "../cached/flight.ts";
import type { Inquiry } from "../cached/inquiry.ts";
import type { LateWrites } from "./late-writes.ts";
import {
  answerFailure,
  askOrigin,
  OriginEnding,
  interimTo,
  passedFields,
  relay,
} from "./origin-answer.ts";
import type { OriginFailure } from "./origin-errors.ts";
import type { OriginAnswer } from "./origin-pools.ts";
import { originFields } from "./origin-request.ts";

export type PassDeps = FlightDeps & {
  readonly bodies: RequestBodies;
  readonly writes: Pick<LateWrites, "begin">;
};

type BodiedRequest = {
  readonly backend: BackendSettings;
  readonly fields: readonly Field[];
  readonly body: RequestBody | undefined;
};

export async function pass(deps: PassDeps, inquiry: Inquiry, reason: PassReason): Promise<void> {
  const { exchange, site, backend, rule } = inquiry;
  const told = originFields(exchange, site.host, backend);
  const fields = withEdits(told, rule.settings.headers.request);
  if (!exchange.hasBody) {
    await passWith(deps, inquiry, reason, { backend, fields, body: undefined });
    return;
  }
  const taken = await deps.bodies.take(exchange, {
    bytesMax: site.limits.body_bytes_max,
    streams: backend.stream_request_body,
  });
  if (taken === "refused") return;
  await using body = taken;
  await passWith(deps, inquiry, reason, { backend, fields, body });
}

/** Asks, and passes the answer on from the step in which its head comes. */
function passWith(
  deps: PassDeps,
  inquiry: Inquiry,
  reason: PassReason,
  { backend, fields, body }: BodiedRequest,
): Promise<void> {
  const { exchange, site, path, rule } = inquiry;
  const write = isWrite(exchange) ? deps.writes.begin(exchange.stop) : undefined;
  const { promise, resolve } = Promise.withResolvers<void>();
  const length = body === undefined ? fieldValue(exchange.fields, "content-length") : body.length;
  const request = {
    method: exchange.method,
    path,
    fields: length === undefined ? fields : [...fields, ["Content-Length", length] as const],
    body: body?.content,
    stop: write?.stop ?? exchange.stop,
    onInterim: interimTo(exchange, rule.earlyEdits),
  };
  askOrigin(deps, site.main_domain, backend, request, (asked) => {
    exchange.originMs = asked.tookMs;
    if (asked.ok)
      resolve(passAnswer(deps, inquiry, reason, { asked: fields, answer: asked.answer }));
    else resolve(passFailure(deps, inquiry, asked.kind, body));
  });
  return write === undefined ? promise : promise.finally(() => write[Symbol.dispose]());
}

async function passAnswer(
  deps: PassDeps,
  inquiry: Inquiry,
  reason: PassReason,
  { asked, answer }: { readonly asked: readonly Field[]; readonly answer: OriginAnswer },
): Promise<void> {
  const { exchange, rule } = inquiry;
  using origin = new OriginEnding(answer, deps, exchange);
  // Before the head: whoever has the answer to a change must not be shown the old state afterwards.
  if (isWrite(exchange) && answer.status >= 200 && answer.status < 400)
    await dropStored(deps, changedKeys(inquiry, asked, answer));
  if (exchange.stop.aborted) return;
  const { answerEdits } = rule.forAnswer(answer.fields);
  await relay(exchange, answerEdits(answer.status), answer, {
    status: answer.status,
    fields: passedFields(answer),
    cacheStatus: passSaid[reason],
    origin,
  });
}

/** What never had a connection has changed nothing. */
const unsent: ReadonlySet<OriginFailure["kind"]> = new Set(["unreachable", "busy"]);

async function passFailure(
  deps: PassDeps,
  inquiry: Inquiry,
  kind: OriginFailure["kind"],
  body: RequestBody | undefined,
): Promise<void> {
  const { exchange } = inquiry;
  // The origin may have done what it was asked before it failed, or before nobody waited for it any more.
  if (isWrite(exchange) && !unsent.has(kind)) await dropStored(deps, ownKeys(inquiry));
  if (exchange.stop.aborted) return;
  if (body?.fault !== undefined) deps.bodies.refuse(exchange, body.fault);
  else answerFailure(exchange, kind);
}

/**
 * Returns the keys of the URL and of what the origin points at. What no rule lets be stored today may have been stored under the rules of before, and counts again when those are
 * back.
 */
function changedKeys(
  { key, target, routes }: Inquiry,
  asked: readonly Field[],
  { fields }: OriginAnswer,
): readonly EntryKey[] {
  // By the name that the origin makes its links of. The scheme is not asked about: both are this site's.
  const own = `http://${fieldValue(asked, "x-forwarded-host") ?? key.host}${target.rawPath}`;
  return [
    ...ownKeys({ key, target, routes }),
    ...sameOriginKeys(key, own, routes, fieldValue(fields, "location")),
    ...sameOriginKeys(key, own, routes, fieldValue(fields, "content-location")),
  ];
}

/** Returns the keys of the URL itself. */
function ownKeys({
  key,
  target: { rawPath, rawQuery },
  routes,
}: Pick<Inquiry, "key" | "target" | "routes">): readonly EntryKey[] {
  return keysOf(key, routes, rawPath, rawQuery);
}

/** Returns every key under which the answer to GET may be stored: which rule it meets may depend on its fields. */
function keysOf(
  key: EntryKey,
  routes: SiteRoutes,
  rawPath: string,
  rawQuery: string,
): readonly EntryKey[] {
  const queries = routes.storedQueries({ rawPath, rawQuery });
  return queries.map((query) => ({ ...key, path: rawPath, query }));
}

/**
 * Returns the keys of a URL of the same origin. There are none for a text that is no URL, or for another
 * origin, which this one has no say about.
 */
function sameOriginKeys(
  key: EntryKey,
  own: string,
  routes: SiteRoutes,
  location: string | undefined,
): readonly EntryKey[] {
  if (location === undefined || !URL.canParse(location, own)) return [];
  const { host, pathname, search } = new URL(location, own);
  if (host !== new URL(own).host) return [];
  return keysOf(key, routes, pathname, search.slice(1));
}
