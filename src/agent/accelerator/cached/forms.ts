// Which form of a response a visitor is sent, and with which head: as its origin sent it, or one of its variants; and which variant would serve the
// visitor better.

import { asksNoTransform } from "../../../core/http/cache-control.ts";
import {
  acceptedCodings,
  codedFields,
  codedFromBytes,
  isCodable,
  isCoding,
  mimeOf,
  type Coding,
} from "../../../core/http/content-coding.ts";
import { formTag, namedForm } from "../../../core/http/form-tag.ts";
import { varyingBy } from "../../../core/http/http-vary.ts";
import { imageFields } from "../../../core/images/image-fields.ts";
import type { SiteConfig } from "../../../core/serving/effective-devlove.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import type { Entry, EntryMeta, VariantForm } from "../../cache/entry.ts";
import type { ResponseCache } from "./cache-port.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import { precondition } from "../../../core/http/conditional.ts";
import { parseHttpDate } from "../../../core/http/http-date.ts";
import { wholeBody, type VariantMaker } from "./variant-maker.ts";

export type VariantChoice = {
  /** Undefined: the response as it was stored. */
  readonly variant: Entry | undefined;
  /** The coding that would be best for the visitor, where there is no such variant. */
  readonly wanted: Coding | undefined;
};

const asStored: VariantChoice = { variant: undefined, wanted: undefined };

/** What a site says of the forms of a response: whether there are any, and which headers are said anew. */
export type Forming = Pick<SiteConfig, "compression" | "headers">;

/** Whether a response has, or may get, variants. What a site says of it counts beside what its source said. */
export function hasVariants(
  { compression, headers }: Forming,
  response: Pick<EntryMeta, "status" | "headers" | "mime"> & { readonly size: number },
): boolean {
  if (!compression) return false;
  const fields = [...response.headers, ...Object.entries(headers.set)];
  return isCodable({ ...response, fields });
}

/**
 * Chooses a form of a response that has variants; `entries` are all of its URL. A part is always cut out of
 * the response as it was stored, so that parts put together fit together.
 */
export function chooseVariant(
  cache: Pick<ResponseCache, "servable">,
  request: { readonly method: string; readonly fields: readonly Field[] },
  base: Pick<Entry, "id">,
  entries: readonly Entry[],
): VariantChoice {
  const { method, fields } = request;
  if (method === "GET" && fieldValue(fields, "range") !== undefined) return asStored;
  if (asksNoTransform(fields)) return asStored;
  return chooseCoded(cache, acceptedCodings(fieldValue(fields, "accept-encoding")), base, entries);
}

/** Chooses by the codings that the visitor takes, best first. */
export function chooseCoded(
  cache: Pick<ResponseCache, "servable">,
  accepted: readonly Coding[],
  base: Pick<Entry, "id">,
  entries: readonly Entry[],
): VariantChoice {
  for (const coding of accepted) {
    const variant = entries.find(
      (entry) => entry.form === coding && entry.baseId === base.id && cache.servable(entry),
    );
    if (variant === undefined) continue;
    const wanted = coding === accepted[0] ? undefined : accepted[0];
    return { variant, wanted };
  }
  return { variant: undefined, wanted: accepted[0] };
}

/** Counts an answer whose body is that of `sent`. */
export function countVariant(metrics: WorkerMetrics, base: Entry, sent: Entry): void {
  const { form, domain, size } = sent;
  if (form === null) return;
  metrics.accel_agent_variants_served_total.inc({ domain, coding: form });
  metrics.accel_agent_variant_bytes_saved_total.inc({ domain }, base.size - size);
}

export type BodyChoice = {
  /** The entry whose body is sent; it is asked for being servable right before the head. */
  readonly entry: Entry;
  readonly headers: readonly Field[];
  /** The head of the form that the request's conditions name: they are judged by it, and a 304 has it. */
  readonly known: readonly Field[];
  readonly isCodable: boolean;
};

type Asking = { readonly method: string; readonly fields: readonly Field[] };

type BodyDeps = { readonly cache: ResponseCache; readonly variants: VariantMaker };

/** Chooses the response itself, after a variant turned out not to be there. */
export function plainBody(request: Asking, site: Forming, base: Entry): BodyChoice {
  return choiceOf(request, base, base, hasVariants(site, base));
}

/**
 * Chooses the body to send. A form that would be better for the visitor is made in the background. `entries`
 * are all of the URL.
 */
export function chooseBody(
  { cache, variants }: BodyDeps,
  request: Asking,
  site: Forming,
  base: Entry,
  entries: readonly Entry[],
): BodyChoice {
  if (!hasVariants(site, base)) return choiceOf(request, base, base, false);
  const { variant, wanted } = chooseVariant(cache, request, base, entries);
  if (wanted !== undefined)
    variants.offer({ base, coding: wanted, read: async () => readAgain(cache, base) });
  return choiceOf(request, base, variant ?? base, true);
}

export function choiceOf(
  { fields }: Asking,
  { headers }: Entry,
  entry: Entry,
  isCodable: boolean,
): BodyChoice {
  if (!isCodable) return { entry, headers, known: headers, isCodable };
  const named = namedForm(fields, fieldValue(headers, "etag"), entry.form, () =>
    takenForms(fields),
  );
  const own = formFields(headers, entry.form);
  const known = named === entry.form ? own : formFields(headers, named);
  return { entry, headers: own, known, isCodable };
}

/** Returns the forms that the visitor takes, best first. */
export function takenForms(fields: readonly Field[]): readonly VariantForm[] {
  return acceptedCodings(fieldValue(fields, "accept-encoding"));
}

/** Returns the head of a form; `headers` are those of the response as its source sent it. */
export function formFields(headers: readonly Field[], form: VariantForm | null): readonly Field[] {
  if (form === null) return headers;
  return isCoding(form) ? codedFields(headers, form) : imageFields(headers, form);
}

/** Reads the body of an entry again, to make a variant of it. */
export async function readAgain(
  cache: ResponseCache,
  base: Entry,
): Promise<Uint8Array | undefined> {
  const body = await cache.open(base);
  if (body === undefined || body instanceof Uint8Array) return body;
  await using stream = body;
  return await wholeBody(stream);
}

/**
 * The head of an origin's answer that is passed on as it comes: the visitor's own conditions, which the origin was not asked, are judged here. He may
 * know the response by the tag of a variant that was made of it before.
 */
export function passedForm(
  request: Asking,
  site: Forming,
  status: number,
  fields: readonly Field[],
): { readonly isNotModified: boolean; readonly fields: readonly Field[] } {
  if (status !== 200) return { isNotModified: false, fields };
  // A body that comes piece by piece may have any size.
  const size = Number(fieldValue(fields, "content-length") ?? codedFromBytes);
  const isCodable = hasVariants(site, {
    status,
    headers: fields,
    mime: mimeOf(fieldValue(fields, "content-type")),
    size,
  });
  const { etag, modifiedMs } = validatorsOf(fields);
  const taken = (): readonly VariantForm[] => takenForms(request.fields);
  const named = isCodable ? namedForm(request.fields, etag, null, taken) : null;
  const known = { etag: etag && formTag(etag, named), modifiedMs };
  const isNotModified = precondition(request.fields, known) === "not-modified";
  const sent = isNotModified ? withoutFields(formFields(fields, named), ofBody) : fields;
  return { isNotModified, fields: isCodable ? varyingBy(sent, "Accept-Encoding") : sent };
}

const ofBody: ReadonlySet<string> = new Set(["content-length", "content-type", "content-encoding"]);

export function validatorsOf(fields: readonly Field[]): {
  readonly etag: string | undefined;
  readonly modifiedMs: number | undefined;
} {
  return {
    etag: fieldValue(fields, "etag"),
    modifiedMs: parseHttpDate(fieldValue(fields, "last-modified") ?? ""),
  };
}
