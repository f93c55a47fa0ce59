// Which form of a response a visitor is sent, and with which head: as its origin sent it, or one of its variants; and which variant would serve the
// visitor better.

import { asksNoTransform } from "../../../core/http/cache-control.ts";
import { codedFields } from "../../../core/http/coded-fields.ts";
import {
  acceptedCodings,
  codedFromBytes,
  codedToBytes,
  isCodable,
  isCoding,
  mimeOf,
  type Coding,
} from "../../../core/http/content-coding.ts";
import { formTag, namedForm } from "../../../core/http/form-tag.ts";
import { varyingBy } from "../../../core/http/http-vary.ts";
import { acceptedImages, type AcceptedImages } from "../../../core/images/accepted-images.ts";
import { imageFields } from "../../../core/images/image-fields.ts";
import type { ImageFormat } from "../../../core/images/image-form.ts";
import { imageSourceBytesMax } from "../../../core/images/image-limits.ts";
import {
  formatOf,
  imageChance,
  smallestImage,
  takenImages,
  type Pictured,
} from "../../../core/images/image-forms.ts";
import type { CacheRoute } from "../../../core/serving/cache-route.ts";
import { SITE_DEFAULTS, type SiteConfig } from "../../../core/serving/effective-devlove.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import type { Entry, VariantForm } from "../../cache/entry.ts";
import type { ResponseCache } from "./cache-port.ts";
import type { ImageMaker } from "./image-maker.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import { precondition } from "../../../core/http/conditional.ts";
import { parseHttpDate } from "../../../core/http/http-date.ts";
import { wholeBody, type VariantMaker } from "./variant-maker.ts";

/** What a site says of the forms of a response: whether there are any, and which headers are said anew. */
export type Forming = Pick<SiteConfig, "compression" | "headers" | "images">;

/** The forms that a response has, or may get, beside the one of its source. */
export type Forms =
  | { readonly kind: "none" }
  | { readonly kind: "codings" }
  | {
      readonly kind: "images";
      /** Those that may be made of it, the smallest first. */
      readonly formats: readonly ImageFormat[];
      /** The media type of the original. */
      readonly mime: string;
      /** Pixels; undefined: as wide as the original. */
      readonly width: number | undefined;
      readonly settings: SiteConfig["images"];
    };

/** Returns what is said of an answer with this head. Where a rule tells answers apart by Accept, the origin chooses among pictures itself. */
export function formingOf(
  site: SiteConfig,
  rule: CacheRoute | undefined,
  headers: readonly Field[],
): Forming {
  const { compression, images } = site;
  const edits = rule?.forAnswer(headers).answerEdits(200) ?? site.headers;
  const isChosen = rule?.varyNames.includes("accept") === true;
  return { compression, headers: edits, images: isChosen ? SITE_DEFAULTS.images : images };
}

const noForms: Forms = { kind: "none" };
const codedForms: Forms = { kind: "codings" };

/** Returns the forms of a response. What a site says of its head counts beside what its source said. `width`: of a picture, as it is asked for. */
export function possibleForms(
  { compression, headers: edits, images }: Forming,
  response: Pictured,
  width: number | undefined,
): Forms {
  const { headers, size = codedFromBytes } = response;
  const chance = imageChance(images, edits, response);
  if (chance.kind === "formats")
    return { ...chance, kind: "images", mime: response.mime, width, settings: images };
  if (!compression) return noForms;
  const fields = [...headers, ...Object.entries(edits.set)];
  return isCodable({ ...response, size, fields }) ? codedForms : noForms;
}

/** What a visitor says of forms, read when it is asked for. */
export type FormTaker = {
  readonly acceptedCodings: readonly Coding[];
  readonly acceptedImages: AcceptedImages;
};

function takerOf(fields: readonly Field[]): FormTaker {
  return {
    get acceptedCodings() {
      return acceptedCodings(fieldValue(fields, "accept-encoding"));
    },
    get acceptedImages() {
      return acceptedImages(fieldValue(fields, "accept"));
    },
  };
}

/** Returns the forms that a visitor takes, best first. */
function takenForms(forms: Forms, taker: FormTaker): readonly VariantForm[] {
  switch (forms.kind) {
    case "none":
      return [];
    case "codings":
      return taker.acceptedCodings;
    case "images":
      return takenImages(taker.acceptedImages, forms).map(({ form }) => form);
    default:
      return forms satisfies never;
  }
}

/** Adds what caches must know of a response that has these forms. To be called last. */
export function varyingByForm(fields: readonly Field[], forms: Forms): readonly Field[] {
  switch (forms.kind) {
    case "none":
      return fields;
    case "codings":
      return varyingBy(fields, "Accept-Encoding");
    case "images":
      return forms.formats.length === 0 ? fields : varyingBy(fields, "Accept");
    default:
      return forms satisfies never;
  }
}

export type VariantChoice = {
  /** Undefined: the response as it was stored. */
  readonly variant: Entry | undefined;
  /** The forms that would be better for the visitor, or may be, best first. */
  readonly wanted: readonly VariantForm[];
};

const asStored: VariantChoice = { variant: undefined, wanted: [] };

/** A request that reads; `fields` are those of the visitor. */
export type Asking = {
  readonly method: string;
  readonly fields: readonly Field[];
  /** Of a picture; see RequestTarget. */
  readonly pictureWidth: number | undefined;
};

/**
 * Chooses a form of a response that has forms; `entries` are all of its URL. A part is always cut out of
 * the response as it was stored, so that parts put together fit together.
 */
export function chooseVariant(
  cache: Pick<ResponseCache, "servable">,
  { method, fields }: Asking,
  forms: Forms,
  base: Pick<Entry, "id">,
  entries: readonly Entry[],
): VariantChoice {
  if (forms.kind === "none") return asStored;
  if (method === "GET" && fieldValue(fields, "range") !== undefined) return asStored;
  if (asksNoTransform(fields)) return asStored;
  return chooseTaken(cache, forms, takerOf(fields), base, entries);
}

/** Chooses by what the visitor takes: the first of the codings that are there, and the smallest of the pictures. */
export function chooseTaken(
  cache: Pick<ResponseCache, "servable">,
  forms: Forms,
  taker: FormTaker,
  base: Pick<Entry, "id">,
  entries: readonly Entry[],
): VariantChoice {
  switch (forms.kind) {
    case "none":
      return asStored;
    case "codings":
      return firstCoded(cache, taker.acceptedCodings, base, entries);
    case "images": {
      const find = (form: VariantForm): Entry | undefined => formOf(cache, form, base, entries);
      const taken = takenImages(taker.acceptedImages, forms);
      const { sent, wanted } = smallestImage(taken, forms.mime, (form) => find(form)?.size);
      return { variant: sent === undefined ? undefined : find(sent), wanted };
    }
    default:
      return forms satisfies never;
  }
}

/** Most visitors are sent the coding that they like best. */
function firstCoded(
  cache: Pick<ResponseCache, "servable">,
  taken: readonly Coding[],
  base: Pick<Entry, "id">,
  entries: readonly Entry[],
): VariantChoice {
  let behind = 0;
  for (const coding of taken) {
    const variant = formOf(cache, coding, base, entries);
    if (variant !== undefined)
      return { variant, wanted: behind === 0 ? none : taken.slice(0, behind) };
    behind += 1;
  }
  return { variant: undefined, wanted: taken };
}

function formOf(
  cache: Pick<ResponseCache, "servable">,
  form: VariantForm,
  { id }: Pick<Entry, "id">,
  entries: readonly Entry[],
): Entry | undefined {
  for (const entry of entries)
    if (entry.form === form && entry.baseId === id && cache.servable(entry)) return entry;
  return undefined;
}

const none: readonly VariantForm[] = [];

/** Counts an answer whose body is that of `sent`. */
export function countVariant(metrics: WorkerMetrics, base: Entry, sent: Entry): void {
  const { form, domain, size } = sent;
  if (form === null) return;
  if (isCoding(form)) {
    metrics.accel_agent_variants_served_total.inc({ domain, coding: form });
    metrics.accel_agent_variant_bytes_saved_total.inc({ domain }, base.size - size);
    return;
  }
  const format = formatOf(form);
  metrics.accel_agent_image_variants_served_total.inc({ domain, format });
  metrics.accel_agent_image_variant_bytes_saved_total.inc({ domain, format }, base.size - size);
}

export type BodyChoice = {
  /** The entry whose body is sent; it is asked for being servable right before the head. */
  readonly entry: Entry;
  readonly headers: readonly Field[];
  /** The head of the form that the request's conditions name: they are judged by it, and a 304 has it. */
  readonly known: readonly Field[];
  readonly forms: Forms;
};

export type FormDeps = {
  readonly cache: ResponseCache;
  readonly variants: VariantMaker;
  readonly imageVariants: ImageMaker;
};

/** Chooses the response itself, after a variant turned out not to be there. */
export function plainBody(request: Asking, site: Forming, base: Entry): BodyChoice {
  return choiceOf(request, base, base, possibleForms(site, base, request.pictureWidth));
}

/**
 * Chooses the body to send. A form that would be better for the visitor is made in the background. `entries`
 * are all of the URL.
 */
export function chooseBody(
  deps: FormDeps,
  request: Asking,
  site: Forming,
  base: Entry,
  entries: readonly Entry[],
): BodyChoice {
  const forms = possibleForms(site, base, request.pictureWidth);
  const { variant, wanted } = chooseVariant(deps.cache, request, forms, base, entries);
  if (wanted.length > 0) offerForms(deps, forms, base, wanted);
  return choiceOf(request, base, variant ?? base, forms);
}

/** Offers the forms that a stored response lacks, to be made in the background. `read`: the bytes of the base; unsaid: as the cache has them. */
export function offerForms(
  { cache, variants, imageVariants }: FormDeps,
  forms: Forms,
  base: Entry,
  wanted: readonly VariantForm[],
  read: () => Promise<Uint8Array | undefined> = async () => readAgain(cache, base),
): void {
  if (forms.kind === "images") {
    const images = wanted.filter((form) => !isCoding(form));
    imageVariants.offer({ base, forms: images, settings: forms.settings, read });
    return;
  }
  const [coding] = wanted;
  if (coding !== undefined && isCoding(coding)) variants.offer({ base, coding, read });
}

export function choiceOf(
  { fields }: Pick<Asking, "fields">,
  { headers }: Entry,
  entry: Entry,
  forms: Forms,
): BodyChoice {
  if (forms.kind === "none") return { entry, headers, known: headers, forms };
  const etag = fieldValue(headers, "etag");
  const named = namedAmong(forms, fields, etag, entry.form);
  const own = formFields(headers, entry.form);
  const known = named === entry.form ? own : formFields(headers, named);
  return { entry, headers: own, known, forms };
}

/** Returns the form that the conditions of a request speak of, where `chosen` would be sent. */
export function namedAmong(
  forms: Forms,
  fields: readonly Field[],
  etag: string | undefined,
  chosen: VariantForm | null,
): VariantForm | null {
  if (forms.kind === "none") return chosen;
  return namedForm(fields, etag, chosen, () => takenForms(forms, takerOf(fields)));
}

/** Returns the head of a form; `headers` are those of the response as its source sent it. */
export function formFields(headers: readonly Field[], form: VariantForm | null): readonly Field[] {
  if (form === null) return headers;
  return isCoding(form) ? codedFields(headers, form) : imageFields(headers, form);
}

/** Reads the body of an entry again, to make a variant of it. */
async function readAgain(cache: ResponseCache, base: Entry): Promise<Uint8Array | undefined> {
  const body = await cache.open(base);
  if (body === undefined || body instanceof Uint8Array) return body;
  await using stream = body;
  return await wholeBody(stream, bodyBytesMax);
}

/** The largest size that any form is made of, bytes. */
export const bodyBytesMax = Math.max(codedToBytes, imageSourceBytesMax);

/**
 * The head of an origin's answer that is passed on as it comes: the visitor's own conditions, which the origin was not asked, are judged here. He may
 * know the response by the tag of a variant that was made of it before.
 */
export function passedForm(
  request: Pick<Asking, "fields" | "pictureWidth">,
  site: Forming,
  status: number,
  headers: readonly Field[],
): { readonly isNotModified: boolean; readonly fields: readonly Field[]; readonly forms: Forms } {
  if (status !== 200) return { isNotModified: false, fields: headers, forms: noForms };
  // A body that comes piece by piece may have any size.
  const length = fieldValue(headers, "content-length");
  const size = length === undefined ? undefined : Number(length);
  const mime = mimeOf(fieldValue(headers, "content-type"));
  const forms = possibleForms(site, { status, headers, mime, size }, request.pictureWidth);
  const { etag, modifiedMs } = validatorsOf(headers);
  const named = namedAmong(forms, request.fields, etag, null);
  const known = { etag: etag && formTag(etag, named), modifiedMs };
  const isNotModified = precondition(request.fields, known) === "not-modified";
  const sent = isNotModified ? withoutFields(formFields(headers, named), ofBody) : headers;
  return { isNotModified, fields: varyingByForm(sent, forms), forms };
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
