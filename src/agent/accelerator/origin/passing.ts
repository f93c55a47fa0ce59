// Requests that the cache has no part in: passed on with their body, and what they change invalidated (RFC 9111 §4.4).

import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import { passSaid, type PassReason } from "../../../core/http/http-pass.ts";
import type { SiteRoutes } from "../../../core/serving/site-routes.ts";
import { sendText } from "../doors/answer.ts";
import type { EntryKey } from "../../cache/entry.ts";
import { dropStored } from "../cached/fill.ts";
import type { FlightDeps } from "../cached/flight.ts";
import type { Inquiry } from "../cached/inquiry.ts";
import type { Exchange } from "../doors/exchange.ts";
import {
  answerFailure,
  askOrigin,
  ending,
  interimTo,
  passedFields,
  relay,
  type OriginDeps,
} from "./origin-answer.ts";
import type { OriginAnswer } from "./origin-pools.ts";
import { originFields } from "./origin-request.ts";

const isUnsafe = (method: string): boolean => !["GET", "HEAD", "OPTIONS", "TRACE"].includes(method);

export async function pass(deps: FlightDeps, inquiry: Inquiry, reason: PassReason): Promise<void> {
  const { exchange, site, backend } = inquiry;
  const asked = originFields(exchange, site.host, backend);
  const answer = await askWithBody(deps, inquiry, asked);
  if (answer === "no-answer") return;
  using origin = ending(answer, deps, exchange);
  // Before the head: whoever has the answer to a change must not be shown the old state afterwards.
  if (isUnsafe(exchange.method) && answer.status >= 200 && answer.status < 400)
    await dropStored(deps, changedKeys(inquiry, asked, answer));
  await relay(exchange, site, answer, {
    status: answer.status,
    fields: passedFields(answer),
    cacheStatus: passSaid[reason],
    origin,
  });
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
    key,
    ...sameOriginKey(key, own, routes, fieldValue(fields, "location")),
    ...sameOriginKey(key, own, routes, fieldValue(fields, "content-location")),
  ];
}

/**
 * Returns the key of a URL of the same origin. There is none for a text that is no URL, or for another
 * origin, which this one has no say about.
 */
function sameOriginKey(
  key: EntryKey,
  own: string,
  routes: SiteRoutes,
  location: string | undefined,
): readonly EntryKey[] {
  if (location === undefined || !URL.canParse(location, own)) return [];
  const { host, pathname, search } = new URL(location, own);
  if (host !== new URL(own).host) return [];
  return [
    { ...key, path: pathname, query: routes.cache(pathname).normalizeQuery(search.slice(1)) },
  ];
}

/** `no-answer`: the visitor has been told. */
async function askWithBody(
  deps: OriginDeps,
  { exchange, site, backend, path }: Inquiry,
  fields: readonly Field[],
): Promise<OriginAnswer | "no-answer"> {
  const body = requestBody(exchange, site.limits.body_bytes_max);
  const length = fieldValue(exchange.fields, "content-length");
  const asked = await askOrigin(deps, site.main_domain, backend, {
    method: exchange.method,
    path,
    fields: length === undefined ? fields : [...fields, ["Content-Length", length]],
    body: body?.read,
    stop: exchange.stop,
    onInterim: interimTo(exchange, site),
  });
  exchange.originMs = asked.tookMs;
  if (asked.ok) return asked.answer;
  if (exchange.stop.aborted) return "no-answer";
  if (body?.isTooLarge() === true)
    sendText(exchange, 413, new BodyTooLarge(site.limits.body_bytes_max).message);
  else answerFailure(exchange, asked.kind);
  return "no-answer";
}

class BodyTooLarge extends Error {
  constructor(bytesMax: number) {
    super(`The body of a request to this site may have ${bytesMax} bytes at most.`);
  }
}

type RequestBody = {
  /**
   * Reads the body; to be called when the connection to the origin is there. Throws BodyTooLarge at the byte
   * after the last allowed one.
   */
  readonly read: () => AsyncGenerator<Uint8Array>;
  readonly isTooLarge: () => boolean;
};

/** Undefined: the request has none. */
function requestBody(exchange: Exchange, bytesMax: number): RequestBody | undefined {
  if (!exchange.hasBody) return undefined;
  let received = 0;
  async function* read(): AsyncGenerator<Uint8Array> {
    if (exchange.awaitsContinue) exchange.response.writeContinue();
    // The request outlives this reader: the answer still has to go out on its socket.
    for await (const chunk of exchange.request.iterator({ destroyOnReturn: false })) {
      // An HTTP request gives buffers; its type says any.
      const bytes = chunk as Uint8Array;
      received += bytes.length;
      if (received > bytesMax) throw new BodyTooLarge(bytesMax);
      yield bytes;
    }
  }
  return { read, isTooLarge: () => received > bytesMax };
}
