// Content codings made here: which a visitor takes (RFC 9110 §12.5.3), and what they are made for.

import { responseDirectives } from "./cache-control.ts";
import { fieldValue, type Field } from "./http-fields.ts";

/**
 * The codings made here, best first for visitors without a preference. At the levels that variants are made
 * with, 360 files (html, css, js, svg, json, xml; 6.7 MB) shrink to 14.3 % with br, 15.4 % with zstd and 16.9
 * % with gzip. All three are made at 50 to 65 MB/s and read at over 250 MB/s.
 */
export const codings = ["br", "zstd", "gzip"] as const;
export type Coding = (typeof codings)[number];

export function isCoding(word: string): word is Coding {
  return word === "br" || word === "zstd" || word === "gzip";
}

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
    weights.set(coding, Math.min(weights.get(coding) ?? 1, memberWeight(parameters)));
  }
  const others = weights.get("*") ?? 0;
  const least = weights.get("identity") ?? 0;
  return codings
    .map((coding) => ({ coding, weight: weights.get(coding) ?? others }))
    .filter(({ weight }) => weight > 0 && weight >= least)
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ coding }) => coding);
}

/** Returns the weight among the parameters of a member of such a list (RFC 9110 §12.4.2): 1 where none is stated, 0 for a malformed one. */
export function memberWeight(parameters: readonly string[]): number {
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
