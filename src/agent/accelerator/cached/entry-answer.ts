// Answering from the cache: in which form a stored response is sent, and whether it may still be used when the head goes out.

import { withEdits, type HeaderEdits } from "../../../core/http/header-edits.ts";
import {
  precondition,
  selectRange,
  type ByteRange,
  type Validators,
} from "../../../core/http/conditional.ts";
import { forBrowsers, forOutdated } from "../../../core/http/browser-lifetime.ts";
import { currentAgeS, isFresh } from "../../../core/http/http-age.ts";
import { parseHttpDate } from "../../../core/http/http-date.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import type { Entry } from "../../cache/entry.ts";
import {
  cacheStatus,
  sendBody,
  writeHead,
  type Attempt,
  type AnswerBody,
} from "../doors/answer.ts";
import type { Exchange } from "../doors/exchange.ts";
import type { WorkerClock } from "../clock.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import type { ResponseCache } from "./cache-port.ts";
import {
  chooseBody,
  countVariant,
  plainBody,
  validatorsOf,
  varyingByForm,
  type BodyChoice,
  type FormDeps,
} from "./forms.ts";
import type { Inquiry, Look } from "./inquiry.ts";

export type EntryDeps = FormDeps & {
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
};

/**
 * The reason why an entry may be used: its own freshness, a rule for stale entries, or the origin's
 * confirmation a moment ago.
 */
type UsableBy = "fresh" | "stale" | "confirmed";

/** The look at the cache by which an entry was chosen. */
type Chosen = Pick<Look, "base" | "entries" | "isSoftened" | "mark">;

type EntryUse = {
  readonly inquiry: Inquiry;
  readonly look: Chosen;
  readonly base: Entry;
  readonly by: UsableBy;
  /** Parameters of Cache-Status. */
  readonly status: string;
};

/**
 * Answers with the selected entry or a variant of it. Nothing is sent when it turns out not to be usable (cleared, aged or torn meanwhile): it is a miss
 * then. Once the head is out a body that fails breaks the answer.
 */
export async function answerEntry(
  deps: EntryDeps,
  inquiry: Inquiry,
  look: Chosen,
  by: UsableBy,
  status = "hit",
): Promise<Attempt> {
  const { base, entries } = look;
  if (base === undefined) return "nothing-sent";
  const use: EntryUse = { inquiry, look, base, by, status };
  const { asking } = inquiry;
  const forming = inquiry.formingOf(base.headers);
  const choice = chooseBody(deps, asking, forming, base, entries);
  const attempt = await answerForm(deps, use, choice);
  return attempt === "nothing-sent" && choice.entry.form !== null
    ? await answerForm(deps, use, plainBody(asking, forming, base))
    : attempt;
}

async function answerForm(deps: EntryDeps, use: EntryUse, choice: BodyChoice): Promise<Attempt> {
  const { exchange } = use.inquiry;
  const plan = planEntry(exchange, use.base.status, choice, deps.clock.ageMs());
  if (!wantsBody(exchange, plan.status)) return await sendEntry(deps, use, choice, plan, undefined);
  const body = await deps.cache.open(choice.entry);
  if (body === undefined) return "nothing-sent";
  if (body instanceof Uint8Array) return await sendEntry(deps, use, choice, plan, body);
  await using stream = body;
  return await sendEntry(deps, use, choice, plan, stream);
}

async function sendEntry(
  { cache, clock, metrics }: EntryDeps,
  { inquiry, look, base, by, status: said }: EntryUse,
  choice: BodyChoice,
  { status, range }: EntryPlan,
  body: AnswerBody | undefined,
): Promise<Attempt> {
  const { exchange } = inquiry;
  const rule = inquiry.rule.forAnswer(base.headers);
  const { entry } = choice;
  const now = clock.ageMs();
  // From here to writeHead nothing is awaited: a clear that was applied before is seen, one that comes later comes after this answer.
  if (!cache.servable(entry)) return "nothing-sent";
  if (by !== "confirmed" && !cache.confirmed(base.domain)) return "nothing-sent";
  if (by === "fresh" && !isFresh(base, now)) return "nothing-sent";
  if (cache.softened(base) && !isUsableSoftened(cache, inquiry, look, by)) return "nothing-sent";
  cache.used(entry);
  const ageS = Math.max(0, currentAgeS(base, now));
  exchange.cache = by === "fresh" ? "hit" : by === "stale" ? "stale" : "miss";
  if (body !== undefined) countVariant(metrics, base, entry);
  // What is stale is not to be kept for longer.
  const browserTtlS = by === "stale" ? null : rule.settings.browser_ttl_s;
  const isOutdated = by === "stale" && cache.softened(base);
  const told = { edits: rule.answerEdits(status), base, ageS, said, browserTtlS, isOutdated };
  const fields = entryFields(told, choice, { status, range });
  writeHead(exchange, status, fields);
  await sendBody(exchange, range === undefined || body === undefined ? body : slice(body, range));
  return "answered";
}

/** Returns whether what a soft clear has made stale may be used: it was known to be stale when it was chosen, or was confirmed since all clears that were given. */
function isUsableSoftened(
  cache: ResponseCache,
  { key }: Inquiry,
  { isSoftened, mark }: Chosen,
  by: UsableBy,
): boolean {
  switch (by) {
    case "fresh":
      return false;
    case "stale":
      return isSoftened;
    case "confirmed":
      return cache.clearMark(key) === mark;
    default:
      return by satisfies never;
  }
}

type EntrySaid = {
  /** What the rule and the site say of headers. */
  readonly edits: HeaderEdits;
  readonly base: Entry;
  readonly ageS: number;
  /** See EntryUse.status. */
  readonly said: string;
  readonly browserTtlS: number | null;
  /** A soft clear has made it stale. */
  readonly isOutdated: boolean;
};

/** Returns the head of an answer from the cache, but for what its connection says. */
export function entryFields(
  { edits, base, ageS, said, browserTtlS, isOutdated }: EntrySaid,
  { entry, headers, known, forms }: BodyChoice,
  { status, range }: EntryPlan,
): readonly Field[] {
  const stored = storedPart(status, headers, known);
  const shared = isOutdated
    ? forOutdated(stored)
    : forBrowsers(stored, { status: base.status, ageS, browserTtlS });
  const fields: Field[] = [
    ...(status === 416 ? stored : shared),
    ...lengthFields(status, entry.size, range),
    ["Age", `${ageS}`],
  ];
  const head = headWithEdits(status, fields, edits);
  return [...varyingByForm(head, forms), cacheStatus(`${said}; ttl=${base.freshForS - ageS}`)];
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
/** The fields of the stored head that an answer leaves out, by its status. */
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

function headWithEdits(
  status: number,
  fields: readonly Field[],
  edits: HeaderEdits,
): readonly Field[] {
  const said = withEdits(fields, edits);
  return status === 416
    ? [...withoutFields(said, aboutWhole), ["Cache-Control", "no-store"]]
    : said;
}

export type EntryPlan = {
  readonly status: number;
  readonly range: ByteRange | undefined;
};

/** If-Match and If-Unmodified-Since are for origins (RFC 9110 §13.2.1); requests that carry them are not looked up. */
export function planEntry(
  { fields, method }: Pick<Exchange, "fields" | "method">,
  status: number,
  { entry, headers, known }: BodyChoice,
  nowMs: number,
): EntryPlan {
  const whole = { status, range: undefined };
  // Conditions and ranges are for what would be answered with success (RFC 9110 §13.2.1, §14.2).
  if (status !== 200) return whole;
  if (precondition(fields, ownValidators(known)) === "not-modified")
    return { status: 304, range: undefined };
  if (method !== "GET") return whole;
  const range = selectRange(fields, validatorsOf(headers), entry.size, nowMs);
  if (range === "unsatisfiable") return { status: 416, range: undefined };
  return range === undefined ? whole : { status: 206, range };
}

/**
 * Returns the validators of a response. Without Last-Modified, Date serves as the modification time (RFC 9111
 * §4.3.2).
 */
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
