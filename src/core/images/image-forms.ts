// Which forms of a picture are made and sent: what its head allows, and what a visitor takes.

import { responseDirectives } from "../http/cache-control.ts";
import { editedNames, type HeaderEdits } from "../http/header-edits.ts";
import { fieldValue, listMembers, type Field } from "../http/http-fields.ts";
import { likedFormats, weightOfType, type AcceptedImages } from "./accepted-images.ts";
import {
  imageForm,
  imageFormats,
  readImageForm,
  type ImageForm,
  type ImageFormat,
} from "./image-form.ts";
import { imageSourceBytesMax } from "./image-limits.ts";

/** The least size of an original: what is smaller fits into a packet or two as it is, bytes. */
export const imageFromBytes = 2_048;

/** The media types of originals, each with the formats that may be smaller. */
const formatsOf: ReadonlyMap<string, readonly ImageFormat[]> = new Map<
  string,
  readonly ImageFormat[]
>([
  ["image/jpeg", ["avif", "webp"]],
  ["image/png", ["avif", "webp"]],
  ["image/webp", ["avif"]],
  ["image/avif", []],
]);

/** What the devlove of a site says of its pictures, as far as it decides about forms. */
export type ImageWishes = {
  readonly optimize: boolean;
  readonly formats: readonly ImageFormat[];
};

/** A response that may be a picture. */
export type Pictured = {
  readonly status: number;
  /** As its source said them. */
  readonly headers: readonly Field[];
  readonly mime: string;
  /** Undefined: not known yet. */
  readonly size: number | undefined;
};

/** Why a response has no forms, as it is told to whoever asks. */
export type NoImageForms =
  | "images.optimize is off"
  | "its status is not 200"
  | "its media type is none that variants are made of"
  | "it is smaller than 2 KiB"
  | "it is larger than 16 MiB"
  | "it has a Content-Encoding or a Content-Range"
  | "it varies by Accept already"
  | "its Cache-Control says no-transform"
  | "headers of the site or of a rule set Content-Type, ETag or no-transform";

export type ImageChance =
  /** The formats that may be made of it, the smallest first. */
  | { readonly kind: "formats"; readonly formats: readonly ImageFormat[] }
  | { readonly kind: "none"; readonly because: NoImageForms };

/**
 * Returns which formats may be made of the response: none of what is no picture, what may not be transformed (RFC 9110 §7.7), and
 * what its source chooses by Accept itself. `edits` are what the site says of its headers.
 */
export function imageChance(
  { optimize, formats }: ImageWishes,
  edits: HeaderEdits,
  { status, headers, mime, size }: Pictured,
): ImageChance {
  if (!optimize) return no("images.optimize is off");
  const possible = formatsOf.get(mime);
  if (possible === undefined) return no("its media type is none that variants are made of");
  if (status !== 200) return no("its status is not 200");
  if (size !== undefined && size < imageFromBytes) return no("it is smaller than 2 KiB");
  if (size !== undefined && size > imageSourceBytesMax) return no("it is larger than 16 MiB");
  const said = saidOtherwise(headers) ?? editedOtherwise(edits);
  if (said !== undefined) return no(said);
  const both = imageFormats.filter(
    (format) => formats.includes(format) && possible.includes(format),
  );
  return { kind: "formats", formats: both };
}

function no(because: NoImageForms): ImageChance {
  return { kind: "none", because };
}

function saidOtherwise(headers: readonly Field[]): NoImageForms | undefined {
  const isPart = ["content-encoding", "content-range"].some(
    (name) => fieldValue(headers, name) !== undefined,
  );
  if (isPart) return "it has a Content-Encoding or a Content-Range";
  const vary = listMembers((fieldValue(headers, "vary") ?? "").toLowerCase());
  if (vary.includes("accept") || vary.includes("*")) return "it varies by Accept already";
  return directivesOf(headers).has("no-transform")
    ? "its Cache-Control says no-transform"
    : undefined;
}

/** Finds what the site says of all forms, where each says its own of itself, and that it forbids them. */
function editedOtherwise(edits: HeaderEdits): NoImageForms | undefined {
  const names = editedNames(edits);
  if (names.size === 0) return undefined;
  const set = Object.entries(edits.set);
  const isEdited =
    names.has("content-type") ||
    set.some(([name]) => name.toLowerCase() === "etag") ||
    directivesOf(set).has("no-transform");
  return isEdited
    ? "headers of the site or of a rule set Content-Type, ETag or no-transform"
    : undefined;
}

function directivesOf(fields: readonly Field[]) {
  return responseDirectives(fieldValue(fields, "cache-control"));
}

/** A form that a visitor takes, and how much he likes its media type, 0 to 1. */
export type TakenImage = { readonly form: ImageForm; readonly weight: number };

/** Returns the forms that a visitor takes of a picture, best first: of the asked width, undefined being that of the original. */
export function takenImages(
  accepted: AcceptedImages,
  {
    formats,
    mime,
    width,
  }: {
    readonly formats: readonly ImageFormat[];
    readonly mime: string;
    readonly width: number | undefined;
  },
): readonly TakenImage[] {
  const liked = likedFormats(accepted, formats, mime);
  return [...liked, "same" as const].flatMap((format) => {
    const form = imageForm({ format, width });
    if (form === undefined) return [];
    const type = format === "same" ? mime : `image/${format}`;
    return [{ form, weight: weightOfType(accepted, type) }];
  });
}

/**
 * The media types of originals of which both formats are made for a visitor who takes both. Of a drawing or a screenshot either may be the smaller by far; of a photograph
 * it is AVIF nearly always, so that a second form of each would cost twice for nothing.
 */
const comparedTypes: ReadonlySet<string> = new Set(["image/png"]);

export type ImageChoice = {
  /** Undefined: none is there, and the original is sent. */
  readonly sent: ImageForm | undefined;
  /** The forms to be made, best first: they would suit the visitor better, or may turn out to be smaller. */
  readonly wanted: readonly ImageForm[];
};

/**
 * Chooses the smallest of the forms that are there and that the visitor likes most; of equal ones, the first of `taken`. No form is there that is not smaller than its
 * original. `mime` is the media type of the original; `sizeOf` returns the size of a form in bytes, undefined where it is not there.
 */
export function smallestImage(
  taken: readonly TakenImage[],
  mime: string,
  sizeOf: (form: ImageForm) => number | undefined,
): ImageChoice {
  let sent: ImageForm | undefined;
  let weightSent = 0;
  let least = Infinity;
  const wanted: ImageForm[] = [];
  for (const { form, weight } of taken) {
    const isBehind = sent !== undefined && weight < weightSent;
    if (isBehind) break;
    const size = sizeOf(form);
    if (size === undefined) {
      const isCompared = comparedTypes.has(mime) && formatOf(form) !== "same";
      if (sent === undefined || isCompared) wanted.push(form);
    } else if (size < least) {
      sent = form;
      weightSent = weight;
      least = size;
    }
  }
  return { sent, wanted };
}

/** Returns the format of a form, as metrics tell it. */
export function formatOf(form: ImageForm): ImageFormat | "same" {
  return readImageForm(form)?.format ?? "same";
}

const dayMs = 86_400_000;

/** Returns when the UTC day ends that is at this moment, ms since the epoch. */
export function utcDayEndMs(nowMs: number): number {
  return (Math.floor(nowMs / dayMs) + 1) * dayMs;
}
