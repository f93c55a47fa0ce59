// Answering with a static file or a variant of it: validators, conditions, one range, and whether the cache index knew it (Cache-Status, noteStatic).

import { withEdits } from "../../../core/http/header-edits.ts";
import { mimeOf } from "../../../core/http/content-coding.ts";
import { formTag } from "../../../core/http/form-tag.ts";
import type { SiteConfig } from "../../../core/serving/effective-devlove.ts";
import type { Field } from "../../../core/http/http-fields.ts";
import type { Entry, EntryKey, EntryMeta, VariantForm } from "../../cache/entry.ts";
import {
  cacheStatus,
  sendBody,
  writeHead,
  type AnswerBody,
  type Attempt,
} from "../doors/answer.ts";
import type { WorkerClock } from "../clock.ts";
import type { Exchange } from "../doors/exchange.ts";
import { SourceChanged, type SiteFile, type SiteFiles } from "./site-files.ts";
import {
  bodyBytesMax,
  chooseVariant,
  countVariant,
  formFields,
  formingOf,
  namedAmong,
  offerForms,
  possibleForms,
  varyingByForm,
  type FormDeps,
  type Forms,
} from "../cached/forms.ts";
import { wholeBody } from "../cached/variant-maker.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import { precondition, selectRange, type ByteRange } from "../../../core/http/conditional.ts";
import { formatHttpDate } from "../../../core/http/http-date.ts";

export type StaticAnswerDeps = FormDeps & {
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
};

/** A request for a static file; `sourceNo` was read before the file was looked up. */
export type StaticRequest = {
  readonly site: SiteConfig;
  readonly files: SiteFiles;
  readonly file: SiteFile;
  /** Of a picture; see RequestTarget. */
  readonly pictureWidth: number | undefined;
  readonly sourceNo: number;
};

/** One look at the index. */
type Known = {
  readonly key: EntryKey;
  readonly meta: EntryMeta;
  readonly forms: Forms;
  /** Undefined: the index does not know the file as it is now. */
  readonly base: Entry | undefined;
};

/** Answers with a file. Sends nothing if the source changed under the read. */
export async function answerStatic(
  deps: StaticAnswerDeps,
  exchange: Exchange,
  request: StaticRequest,
): Promise<Attempt> {
  try {
    return await answerFound(deps, exchange, request);
  } catch (error) {
    if (error instanceof SourceChanged && !exchange.response.headersSent) return "nothing-sent";
    throw error;
  }
}

async function answerFound(
  deps: StaticAnswerDeps,
  exchange: Exchange,
  request: StaticRequest,
): Promise<Attempt> {
  const { cache } = deps;
  const { site, file, pictureWidth } = request;
  const key: EntryKey = {
    domain: site.main_domain,
    host: site.host,
    kind: "static",
    path: file.path,
    query: "",
  };
  const meta = metaOf(request, deps.clock);
  const entries = cache.find(key);
  const base = entries.find(
    (entry) => entry.form === null && entry.digest === file.digest && cache.servable(entry),
  );
  const forms = formsOfFile(site, file, pictureWidth);
  const known: Known = { key, meta, forms, base };
  // A file without validator may change without being another: nothing lasting is made of it.
  if (base !== undefined && file.validators.etag !== undefined) {
    const { method, fields } = exchange;
    const asking = { method, fields, pictureWidth };
    const { variant, wanted } = chooseVariant(cache, asking, forms, base, entries);
    const read = async (): Promise<Uint8Array | undefined> => readFileAgain(request, base);
    if (wanted.length > 0) offerForms(deps, forms, base, wanted, read);
    if (
      variant !== undefined &&
      (await answerVariant(deps, exchange, request, known, variant)) === "answered"
    )
      return "answered";
  }
  await answerFile(deps, exchange, request, known);
  return "answered";
}

/** Answers with a variant. Sends nothing if the variant has been cleared or lost meanwhile. */
async function answerVariant(
  { cache, clock, metrics }: StaticAnswerDeps,
  exchange: Exchange,
  { site, file }: StaticRequest,
  known: Known,
  variant: Entry,
): Promise<Attempt> {
  const { form: word, size } = variant;
  const form: StaticForm = { word, size, forms: known.forms };
  const plan = planStatic(exchange, site, file, form, clock.wallMs());
  if (plan.body !== undefined) {
    if (!cache.servable(variant)) return "nothing-sent";
    sendHead(exchange, site, plan, known, true);
    await sendBody(exchange, undefined);
    return "answered";
  }
  const body = await cache.open(variant);
  if (body === undefined) return "nothing-sent";
  const send = async (bytes: AnswerBody): Promise<Attempt> => {
    // From here to writeHead nothing is awaited: whoever clears the file has cleared its variants.
    if (!cache.servable(variant)) return "nothing-sent";
    if (known.base !== undefined) countVariant(metrics, known.base, variant);
    sendHead(exchange, site, plan, known, true);
    await sendBody(exchange, bytes);
    return "answered";
  };
  if (body instanceof Uint8Array) return await send(body);
  await using stream = body;
  return await send(stream);
}

async function answerFile(
  { cache, clock }: StaticAnswerDeps,
  exchange: Exchange,
  { site, file }: StaticRequest,
  known: Known,
): Promise<void> {
  const { key, meta, forms, base } = known;
  const form: StaticForm = { word: null, size: file.size, forms };
  const plan = planStatic(exchange, site, file, form, clock.wallMs());
  const body = plan.body === "none" ? undefined : await file.body(plan.body);
  const isHit = base !== undefined && cache.servable(base);
  sendHead(exchange, site, plan, known, isHit);
  if (!isHit && plan.status < 400) cache.noteStatic(key, meta, file.size);
  await sendBody(exchange, body);
}

function sendHead(
  exchange: Exchange,
  site: SiteConfig,
  plan: StaticPlan,
  { forms }: Known,
  isHit: boolean,
): void {
  exchange.cache = isHit ? "hit" : "miss";
  writeHead(exchange, plan.status, staticFields(site, plan, forms, isHit ? "hit" : "fwd=miss"));
}

/** Returns the head of a file's answer, but for what its connection says. `said`: the parameters of Cache-Status. */
export function staticFields(
  { headers }: SiteConfig,
  { fields }: StaticPlan,
  forms: Forms,
  said: string,
): readonly Field[] {
  const own = withEdits(fields, headers);
  return [...varyingByForm(own, forms), cacheStatus(said)];
}

/** Reads the bytes that the entry stands for, long after the visitor's answer; undefined when the file is another by now. */
export async function readFileAgain(
  { files, file: { path } }: Pick<StaticRequest, "files" | "file">,
  base: Entry,
): Promise<Uint8Array | undefined> {
  await using file = await files.find(path);
  if (file === undefined || file.digest !== base.digest) return undefined;
  // Awaited here: the file is closed when this returns.
  return file.validators.etag === undefined
    ? undefined
    : await wholeBody(await file.body(undefined), bodyBytesMax);
}

/** The site's page for what is not there: whole, without validators, never an entry. */
export async function answerNotFound(
  exchange: Exchange,
  site: SiteConfig,
  file: SiteFile,
): Promise<void> {
  const body = exchange.method === "HEAD" ? undefined : await file.body(undefined);
  const fields: readonly Field[] = [
    ["Content-Type", file.contentType],
    ["Content-Length", `${file.size}`],
    ["Cache-Control", "no-cache"],
  ];
  writeHead(exchange, 404, withEdits(fields, site.headers));
  await sendBody(exchange, body);
}

/** Returns the forms that a file has, or may get. */
export function formsOfFile(
  site: SiteConfig,
  { contentType, size }: SiteFile,
  pictureWidth: number | undefined,
): Forms {
  const head = headOf(contentType);
  return possibleForms(formingOf(site, undefined, head.headers), { ...head, size }, pictureWidth);
}

function headOf(contentType: string): Pick<EntryMeta, "status" | "headers" | "mime"> {
  return { status: 200, headers: [["Content-Type", contentType]], mime: mimeOf(contentType) };
}

function metaOf({ site, file, sourceNo }: StaticRequest, clock: WorkerClock): EntryMeta {
  return {
    ...headOf(file.contentType),
    vary: null,
    storedAtMs: Math.floor(clock.ageMs()),
    initialAgeS: 0,
    freshForS: site.static.max_age_s,
    sourceNo,
    digest: file.digest,
  };
}

export type StaticPlan = {
  readonly status: number;
  readonly fields: readonly Field[];
  /** Undefined: the whole. */
  readonly body: "none" | ByteRange | undefined;
};

/** The file as it lies there, or a variant of it. */
export type StaticForm = {
  readonly word: VariantForm | null;
  readonly size: number;
  /** Visitors may know it by the tags of these. */
  readonly forms: Forms;
};

/** Plans the answer. If the request has a range, `form` must be the file itself. */
export function planStatic(
  request: { readonly method: string; readonly fields: readonly Field[] },
  site: SiteConfig,
  file: SiteFile,
  form: StaticForm,
  nowMs: number,
): StaticPlan {
  const { method, fields } = request;
  const { etag } = file.validators;
  const named = namedAmong(form.forms, fields, etag, form.word);
  const known = { ...file.validators, etag: etag && formTag(etag, named) };
  const condition = precondition(fields, known);
  if (condition === "not-modified")
    return { status: 304, fields: metadata(site, known), body: "none" };
  if (condition === "failed")
    return { status: 412, fields: [["Content-Length", "0"]], body: "none" };
  const range =
    method === "GET" ? selectRange(fields, file.validators, file.size, nowMs) : undefined;
  if (range === undefined)
    return {
      status: 200,
      fields: representation(site, file, form),
      body: method === "HEAD" ? "none" : undefined,
    };
  if (range === "unsatisfiable") {
    return {
      status: 416,
      fields: [
        ["Content-Range", `bytes */${file.size}`],
        ["Content-Length", "0"],
      ],
      body: "none",
    };
  }
  return {
    status: 206,
    fields: [
      ["Content-Type", file.contentType],
      ["Content-Length", `${range.last - range.first + 1}`],
      ["Content-Range", `bytes ${range.first}-${range.last}/${file.size}`],
      ...metadata(site, file.validators),
    ],
    body: range,
  };
}

function representation(site: SiteConfig, file: SiteFile, form: StaticForm): readonly Field[] {
  const fields: readonly Field[] = [
    ["Content-Type", file.contentType],
    ["Content-Length", `${form.size}`],
    ["Accept-Ranges", "bytes"],
    ...metadata(site, file.validators),
  ];
  return formFields(fields, form.word);
}

function metadata(site: SiteConfig, validators: SiteFile["validators"]): readonly Field[] {
  const fields: Field[] = [["Cache-Control", `public, max-age=${site.static.max_age_s}`]];
  if (validators.etag !== undefined) fields.push(["ETag", validators.etag]);
  if (validators.modifiedMs !== undefined)
    fields.push(["Last-Modified", formatHttpDate(validators.modifiedMs)]);
  return fields;
}
