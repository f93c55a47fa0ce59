// Content codings made here: which a visitor takes (RFC 9110 §12.5.3), what they are made for, and what they change of a response's head.
//
// Each coding of a response is a representation of its own with a strong validator of its own (RFC 9110 §8.8.3.3): `"x"` becomes `"x-br"`. Whoever
// revalidates may name any of them.

import { responseDirectives } from "./cache-control.ts";
import { fieldValue, listMembers, withoutFields, type Field } from "./http-fields.ts";

/**
 * The codings made here, best first for visitors without a preference. At the levels that variants are made
 * with, 360 files (html, css, js, svg, json, xml; 6.7 MB) shrink to 14.3 % with br, 15.4 % with zstd and 16.9
 * % with gzip. All three are made at 50 to 65 MB/s and read at over 250 MB/s.
 */
export const codings = ["br", "zstd", "gzip"] as const;
export type Coding = (typeof codings)[number];

/** The least size that is coded; a smaller body fits into one packet with its head, coded or not. */
export const codedFromBytes = 1_024;
/** The largest size that is coded, because a body is in memory while it is coded. */
export const codedToBytes = 8 * 2 ** 20;
/** The least share of the bytes that a coding must save to be kept. */
const savedShareMin = 0.1;

/**
 * Returns the codings that suit the visitor at least as well as none, best first. Without the field there are
 * none, because only old programs do not send it. A malformed weight counts as 0.
 */
export function acceptedCodings(acceptEncoding: string | undefined): readonly Coding[] {
  if (acceptEncoding === undefined || acceptEncoding === "") return [];
  const weights = new Map<string, number>();
  for (const member of acceptEncoding.toLowerCase().split(",")) {
    const [name = "", ...parameters] = member.split(";").map((part) => part.trim());
    const coding = name === "x-gzip" ? "gzip" : name;
    weights.set(coding, Math.min(weights.get(coding) ?? 1, weightOf(parameters)));
  }
  const others = weights.get("*") ?? 0;
  const least = weights.get("identity") ?? 0;
  return codings
    .map((coding) => ({ coding, weight: weights.get(coding) ?? others }))
    .filter(({ weight }) => weight > 0 && weight >= least)
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ coding }) => coding);
}

function weightOf(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith("q="));
  if (weight === undefined) return 1;
  return /^q=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight.slice(2)) : 0;
}

/**
 * Media types that are text at heart, beside `text/*`, `+json` and `+xml`. Images, sound, films, archives and
 * woff fonts are compressed already.
 */
const textual: ReadonlySet<string> = new Set([
  "application/ecmascript",
  "application/graphql",
  "application/javascript",
  "application/json",
  "application/json5",
  "application/jsonl",
  "application/rtf",
  "application/toml",
  "application/vnd.ms-fontobject",
  "application/wasm",
  "application/x-font-opentype",
  "application/x-font-truetype",
  "application/x-font-ttf",
  "application/x-javascript",
  "application/x-ndjson",
  "application/x-sh",
  "application/xml",
  "application/xml-dtd",
  "application/yaml",
  "font/collection",
  "font/otf",
  "font/sfnt",
  "font/ttf",
]);
/** Event streams stay uncoded, because events must arrive one by one. */
const neverCoded: ReadonlySet<string> = new Set(["text/event-stream"]);

/** Returns the media type of a Content-Type in lower case, without parameters. */
export function mimeOf(contentType: string | undefined): string {
  return (contentType ?? "").replace(/;.*$/, "").trim().toLowerCase();
}

/** `mime` is what mimeOf returns. */
export function isTextual(mime: string): boolean {
  if (neverCoded.has(mime)) return false;
  return mime.startsWith("text/") || /\+(?:json|xml)$/.test(mime) || textual.has(mime);
}

export type Codable = {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly mime: string;
  readonly size: number;
};

/**
 * Returns whether variants of the response may be made and sent (RFC 9110 §7.7). If so, it varies by
 * Accept-Encoding, whichever form is sent.
 */
export function isCodable({ status, fields, mime, size }: Codable): boolean {
  return (
    status === 200 &&
    size >= codedFromBytes &&
    size <= codedToBytes &&
    isTextual(mime) &&
    fieldValue(fields, "content-encoding") === undefined &&
    fieldValue(fields, "content-range") === undefined &&
    !responseDirectives(fieldValue(fields, "cache-control")).has("no-transform")
  );
}

/** The most bytes that a coded body may have to be worth it. */
export function codedBytesMax(size: number): number {
  return Math.floor(size * (1 - savedShareMin));
}

/** Returns the tag of the coded form. Weak tags stay: they say that the meaning is equal, and it is. */
export function codedTag(etag: string, coding: Coding | null): string {
  return coding === null || !etag.endsWith('"') || etag.startsWith("W/")
    ? etag
    : `${etag.slice(0, -1)}-${coding}"`;
}

/**
 * Fields that speak of the uncoded bytes, and of ranges, which are served of the uncoded body only. RFC 9530
 * digests are of the coded content.
 */
const ofOtherBytes: ReadonlySet<string> = new Set([
  "accept-ranges",
  "content-digest",
  "content-md5",
  "digest",
  "repr-digest",
]);

/** Returns the head of the coded form; `fields` are those of the uncoded one. */
export function codedFields(fields: readonly Field[], coding: Coding | null): readonly Field[] {
  if (coding === null) return fields;
  return [
    ...withoutFields(fields, ofOtherBytes).map(([name, value]): Field =>
      name.toLowerCase() === "etag" ? [name, codedTag(value, coding)] : [name, value],
    ),
    ["Content-Encoding", coding],
  ];
}

/**
 * Adds what caches must know to the fields of a response that has, or may get, coded forms. Call it last, for
 * it must see every other change.
 */
export function varyingByCoding(fields: readonly Field[]): readonly Field[] {
  const said = listMembers((fieldValue(fields, "vary") ?? "").toLowerCase());
  return said.includes("*") || said.includes("accept-encoding")
    ? fields
    : [...fields, ["Vary", "Accept-Encoding"]];
}

/**
 * Returns the form that the request's If-Match or If-None-Match speaks of: the one that would be sent, else
 * the best of those that the visitor takes whose tag is named. The tag of that form is compared, and sent
 * with a 304.
 */
export function namedCoding(
  request: readonly Field[],
  etag: string | undefined,
  chosen: Coding | null,
): Coding | null {
  const condition = fieldValue(request, "if-match") ?? fieldValue(request, "if-none-match");
  if (condition === undefined || etag === undefined) return chosen;
  const named = new Set(listMembers(condition).map((member) => member.replace(/^W\//, "")));
  const accepted = acceptedCodings(fieldValue(request, "accept-encoding"));
  const found = [chosen, ...accepted, null].find((coding) => named.has(codedTag(etag, coding)));
  return found === undefined ? chosen : found;
}
