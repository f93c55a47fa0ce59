// Answering from the cache: which stored response a request selects, and whether it may still be used when the head goes out.

import {
  precondition,
  selectRange,
  type ByteRange,
  type Validators,
} from "../../../core/http/conditional.ts";
import { varyingByCoding } from "../../../core/http/content-coding.ts";
import { currentAgeS, isFresh } from "../../../core/http/http-age.ts";
import { mayServeAuthorized } from "../../../core/http/http-cache.ts";
import { parseHttpDate } from "../../../core/http/http-date.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import { isVariantFor, type Selecting } from "../../../core/http/http-vary.ts";
import type { Entry } from "../../cache/entry.ts";
import {
  cacheStatus,
  sendBody,
  withSiteHeaders,
  writeHead,
  type AnswerBody,
} from "../doors/answer.ts";
import {
  chooseBody,
  countVariant,
  plainBody,
  validatorsOf,
  type BodyChoice,
  type BodyUse,
} from "./forms.ts";
import type { ResponseCache } from "./cache-port.ts";
import type { Exchange } from "../doors/exchange.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";

/** Synchronous. The newest response for the request decides (RFC 9111 §4.1). */
export function selectEntry(
  cache: ResponseCache,
  entries: readonly Entry[],
  selecting: Selecting,
  isAuthorized: boolean,
): Entry | undefined {
  return entries.find(
    (entry) =>
      entry.coding === null &&
      isVariantFor(entry.vary, selecting) &&
      cache.servable(entry) &&
      (!isAuthorized || mayServeAuthorized(entry.headers)),
  );
}

export type EntryUse = BodyUse & {
  readonly metrics: WorkerMetrics;
  readonly nowMs: () => number;
  /** What makes it usable: its own freshness; a rule for stale ones; that the origin has just confirmed it. */
  readonly by: "fresh" | "stale" | "confirmed";
  /** Parameters of Cache-Status. */
  readonly status: string;
};

/**
 * False when the entry turned out not to be usable (cleared, aged or torn meanwhile): nothing was sent and it is a miss. Once the
 * head is out a body that fails breaks the answer.
 */
export async function answerEntry(
  exchange: Exchange,
  base: Entry,
  use: EntryUse,
): Promise<boolean> {
  const choice = chooseBody(exchange, base, use);
  if (await answerForm(exchange, base, choice, use)) return true;
  return (
    choice.entry.coding !== null &&
    (await answerForm(exchange, base, plainBody(exchange, base, use), use))
  );
}

async function answerForm(
  exchange: Exchange,
  base: Entry,
  choice: BodyChoice,
  use: EntryUse,
): Promise<boolean> {
  const plan = planEntry(exchange, base.status, choice, use.nowMs());
  const send = async (body: AnswerBody | undefined): Promise<boolean> =>
    await sendEntry(exchange, base, choice, plan, body, use);
  if (!wantsBody(exchange, plan.status)) return await send(undefined);
  const body = await use.cache.open(choice.entry);
  if (body === undefined) return false;
  if (body instanceof Uint8Array) return await send(body);
  await using stream = body;
  return await send(stream);
}

async function sendEntry(
  exchange: Exchange,
  base: Entry,
  { entry, headers, known, isCodable }: BodyChoice,
  { status, range }: EntryPlan,
  body: AnswerBody | undefined,
  use: EntryUse,
): Promise<boolean> {
  const now = use.nowMs();
  // From here to writeHead nothing is awaited: a clear that was applied before is seen, one that comes later comes after this answer.
  if (!use.cache.servable(entry)) return false;
  if (use.by !== "confirmed" && !use.cache.confirmed(base.domain)) return false;
  if (use.by === "fresh" && !isFresh(base, now)) return false;
  use.cache.used(entry);
  const ageS = Math.max(0, currentAgeS(base, now));
  const fields: Field[] = [
    ...storedPart(status, headers, known),
    ...lengthFields(status, entry.size, range),
    ["Age", `${ageS}`],
  ];
  exchange.cache = use.by === "fresh" ? "hit" : use.by === "stale" ? "stale" : "miss";
  if (body !== undefined) countVariant(use.metrics, base, entry);
  const said = headWithSite(status, fields, use);
  writeHead(exchange, status, [
    ...(isCodable ? varyingByCoding(said) : said),
    cacheStatus(`${use.status}; ttl=${base.freshForS - ageS}`),
  ]);
  await sendBody(exchange, range === undefined || body === undefined ? body : slice(body, range));
  return true;
}

/** A 416 is not the response that was stored, and nobody is to keep it as such. */
const aboutWhole: ReadonlySet<string> = new Set([
  "cache-control",
  "cdn-cache-control",
  "content-digest",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-location",
  "content-md5",
  "content-type",
  "digest",
  "etag",
  "expires",
  "last-modified",
  "pragma",
  "repr-digest",
]);
/** By status: what of the stored head an answer does not have. */
const unsaid: Readonly<Record<number, ReadonlySet<string>>> = {
  304: new Set(["content-type", "content-encoding"]),
  416: aboutWhole,
};

function storedPart(
  status: number,
  headers: readonly Field[],
  known: readonly Field[],
): readonly Field[] {
  const gone = unsaid[status];
  return gone === undefined ? headers : withoutFields(status === 304 ? known : headers, gone);
}

function headWithSite(
  status: number,
  fields: readonly Field[],
  { site }: Pick<EntryUse, "site">,
): readonly Field[] {
  const said = withSiteHeaders(fields, site.headers);
  return status === 416
    ? [...withoutFields(said, aboutWhole), ["Cache-Control", "no-store"]]
    : said;
}

type EntryPlan = {
  readonly status: number;
  readonly range: ByteRange | undefined;
};

/** If-Match and If-Unmodified-Since are for origins (RFC 9110 §13.2.1); requests that carry them are not looked up. */
function planEntry(
  { fields, method }: Exchange,
  status: number,
  { entry, headers, known }: BodyChoice,
  nowMs: number,
): EntryPlan {
  const whole = { status, range: undefined };
  // Both are for what would be answered with success (RFC 9110 §13.2.1, §14.2).
  if (status !== 200) return whole;
  if (precondition(fields, ownValidators(known)) === "not-modified")
    return { status: 304, range: undefined };
  if (method !== "GET") return whole;
  const range = selectRange(fields, validatorsOf(headers), entry.size, nowMs);
  if (range === "unsatisfiable") return { status: 416, range: undefined };
  return range === undefined ? whole : { status: 206, range };
}

/** What was not changed since it was made was not changed since its Date (RFC 9111 §4.3.2). */
function ownValidators(headers: readonly Field[]): Validators {
  const { etag, modifiedMs } = validatorsOf(headers);
  return { etag, modifiedMs: modifiedMs ?? parseHttpDate(fieldValue(headers, "date") ?? "") };
}

function wantsBody(exchange: Exchange, status: number): boolean {
  return exchange.method !== "HEAD" && status !== 204 && status !== 304 && status !== 416;
}

function lengthFields(
  status: number,
  size: number,
  range: ByteRange | undefined,
): readonly Field[] {
  if (status === 204 || status === 304) return [];
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

function slice(body: AnswerBody, { first, last }: ByteRange): AnswerBody {
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
