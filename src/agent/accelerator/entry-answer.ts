// Answering from the cache: which stored response may be used, and whether it still may when the head goes out.

import { precondition, selectRange, type ByteRange } from "../../core/conditional.ts";
import type { SiteSettings } from "../../core/effective-devlove.ts";
import { parseHttpDate } from "../../core/http-date.ts";
import { currentAgeS, isFresh, isVariantFor } from "../../core/http-cache.ts";
import { fieldValue, withoutFields, type Field } from "../../core/http-fields.ts";
import { cacheStatus, sendBody, withSiteHeaders, writeHead, type Body } from "./answer.ts";
import type { Entry, EntryKey, ResponseCache } from "./cache-port.ts";
import type { Exchange } from "./exchange.ts";

export type Lookup =
  | { readonly kind: "usable"; readonly entry: Entry }
  /** `stale`: there is one, but it has to be fetched anew. */
  | { readonly kind: "miss" | "stale" };

/** Synchronous. The newest variant for the request decides (RFC 9111 §4.1). */
export function lookUp(
  cache: ResponseCache,
  key: EntryKey,
  request: readonly Field[],
  nowMs: number,
): Lookup {
  const entry = cache
    .find(key)
    .find(({ id, vary }) => cache.servable(id) && isVariantFor(vary, request));
  if (entry === undefined) return { kind: "miss" };
  return cache.confirmed() && isFresh(entry, nowMs) ? { kind: "usable", entry } : { kind: "stale" };
}

/**
 * False when the entry turned out not to be usable (cleared, aged or torn meanwhile): nothing was sent and it is a miss. Once the
 * head is out a body that fails breaks the answer.
 */
export async function answerEntry(
  exchange: Exchange,
  headers: SiteSettings["headers"],
  entry: Entry,
  options: EntryOptions,
): Promise<boolean> {
  const { cache, nowMs } = options;
  const plan = planEntry(exchange, entry, nowMs());
  if (!wantsBody(exchange, plan.status))
    return sendEntry(exchange, headers, entry, plan, undefined, options);
  const body = await cache.open(entry);
  if (body === undefined) return false;
  if (body instanceof Uint8Array) return sendEntry(exchange, headers, entry, plan, body, options);
  await using stream = body;
  return await sendEntry(exchange, headers, entry, plan, stream, options);
}

type EntryOptions = { readonly cache: ResponseCache; readonly nowMs: () => number };

async function sendEntry(
  exchange: Exchange,
  headers: SiteSettings["headers"],
  entry: Entry,
  { status, range }: EntryPlan,
  body: Body | undefined,
  { cache, nowMs }: EntryOptions,
): Promise<boolean> {
  const now = nowMs();
  // From here to writeHead nothing is awaited: a clear that was applied before is seen, one that comes later comes after this answer.
  if (!cache.servable(entry.id) || !cache.confirmed() || !isFresh(entry, now)) return false;
  const ageS = currentAgeS(entry, now);
  const fields: Field[] = [
    ...withoutFields(entry.headers, status === 304 ? contentFields : nothing),
    ...lengthFields(status, entry.size, range),
    ["Age", `${ageS}`],
  ];
  exchange.cache = "hit";
  writeHead(exchange, status, [
    ...withSiteHeaders(fields, headers),
    cacheStatus(`hit; ttl=${entry.freshForS - ageS}`),
  ]);
  await sendBody(exchange, range === undefined || body === undefined ? body : slice(body, range));
  return true;
}

const nothing: ReadonlySet<string> = new Set();
const contentFields: ReadonlySet<string> = new Set(["content-type", "content-encoding"]);

type EntryPlan = {
  readonly status: number;
  readonly range: ByteRange | undefined;
};

/** If-Match and If-Unmodified-Since are for origins (RFC 9110 §13.2.1); requests that carry them are not looked up. */
function planEntry(exchange: Exchange, entry: Entry, nowMs: number): EntryPlan {
  const validators = validatorsOf(entry.headers);
  if (precondition(exchange.fields, validators) === "not-modified")
    return { status: 304, range: undefined };
  if (exchange.method !== "GET") return { status: entry.status, range: undefined };
  const range = selectRange(exchange.fields, validators, entry.size, nowMs);
  if (range === "unsatisfiable") return { status: 416, range: undefined };
  return { status: range === undefined ? entry.status : 206, range };
}

export function validatorsOf(fields: readonly Field[]): {
  readonly etag: string | undefined;
  readonly modifiedMs: number | undefined;
} {
  return {
    etag: fieldValue(fields, "etag"),
    modifiedMs: parseHttpDate(fieldValue(fields, "last-modified") ?? ""),
  };
}

function wantsBody(exchange: Exchange, status: number): boolean {
  return exchange.method !== "HEAD" && status !== 304 && status !== 416;
}

function lengthFields(
  status: number,
  size: number,
  range: ByteRange | undefined,
): readonly Field[] {
  if (status === 304) return [];
  if (status === 416)
    return [
      ["Content-Range", `bytes */${size}`],
      ["Content-Length", "0"],
    ];
  if (range === undefined) return [["Content-Length", `${size}`]];
  return [
    ["Content-Range", `bytes ${range.first}-${range.last}/${size}`],
    ["Content-Length", `${range.last - range.first + 1}`],
  ];
}

function slice(body: Body, { first, last }: ByteRange): Body {
  return body instanceof Uint8Array ? body.subarray(first, last + 1) : sliced(body, first, last);
}

async function* sliced(
  body: AsyncIterable<Uint8Array>,
  first: number,
  last: number,
): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const chunk of body) {
    const from = Math.max(0, first - at);
    const to = Math.min(chunk.length, last + 1 - at);
    if (from < to) yield chunk.subarray(from, to);
    at += chunk.length;
    if (at > last) return;
  }
}
