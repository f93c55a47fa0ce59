// Selects the variant for a request (RFC 9111 §4.1). Values that mean the same are brought to one spelling.

import type { CacheSettings } from "../serving/effective-devlove.ts";
import { fieldValue, listMembers, type Field } from "./http-fields.ts";

/**
 * The name of the cookies that an origin was told among the fields that a stored response varies by, where a
 * rule varies by cookies; no field can have this name. A response of such a rule answers only who would be
 * asked for with the same cookies, whatever the origin says of `Vary`.
 */
export const toldCookiesName = ":cookies";

/** The name of what the fields of a request decided in the choice of its rule there; see CacheRoute. */
export const ruleChoiceName = ":rule-choice";

/**
 * The name of what the rule says of the headers of its requests there; see header-edits.ts. A stored response answers only
 * where the origin would be asked with the same.
 */
export const requestEditsKey = ":request-headers";

/** Maps a name in lower case to the request's value in its one spelling, "" if there is none. */
export type Selecting = (name: string) => string;

export function selectingOf(requestFields: readonly Field[]): Selecting {
  return selectingBy((name) => fieldValue(requestFields, name));
}

/**
 * Looks values up and normalizes them when first asked for, because most requests meet few fields that
 * anything varies by.
 */
export function selectingBy(lookUp: (name: string) => string | undefined): Selecting {
  const known = new Map<string, string>();
  return (name) => {
    let value = known.get(name);
    if (value === undefined) {
      value = selectingValue(name, lookUp(name));
      known.set(name, value);
    }
    return value;
  };
}

/** Returns the one spelling of a field's value, "" if there is none. */
export function selectingValue(name: string, said: string | undefined): string {
  return said === undefined ? "" : normal(name, said);
}

/**
 * Fields that are lists by definition: blanks around members and empty members mean nothing (RFC 9110
 * §5.6.1).
 */
const lists: ReadonlySet<string> = new Set([
  "accept",
  "accept-charset",
  "accept-encoding",
  "cache-control",
  "forwarded",
  "prefer",
  "via",
  "x-forwarded-for",
]);

/** Fields in which a comma is an ordinary character. */
const singles: ReadonlySet<string> = new Set([
  "authorization",
  "cookie",
  toldCookiesName,
  "from",
  "host",
  "origin",
  "referer",
  "user-agent",
  "x-forwarded-host",
]);

/**
 * Normalizes a value. A field that is not known loses only the blanks beside commas, so that two lines are as
 * one (RFC 9111 §4.1), and none if anything in it is quoted.
 */
function normal(name: string, value: string): string {
  if (name === "accept-language") return normalLanguages(value);
  if (lists.has(name)) return listMembers(value).join(", ");
  if (singles.has(name) || value.includes('"')) return value.trim();
  return value
    .split(",")
    .map((piece) => piece.trim())
    .join(", ");
}

/**
 * Normalizes languages: case, blanks and the order of languages of equal weight mean nothing (RFC 9110
 * §12.4.2, §12.5.4).
 */
function normalLanguages(value: string): string {
  return listMembers(value.toLowerCase())
    .map((member) => {
      const [language = "", ...parameters] = member.split(";").map((part) => part.trim());
      const weight = parameters.map((part) => /^q=([\d.]+)$/.exec(part)?.[1]).find(Boolean);
      return { language, weight: Number(weight ?? 1) };
    })
    .toSorted((a, b) => b.weight - a.weight || (a.language < b.language ? -1 : 1))
    .map(({ language, weight }) => (weight === 1 ? language : `${language};q=${weight}`))
    .join(", ");
}

/**
 * Returns undefined for `Vary: *`. An encoded body varies by Accept-Encoding whether or not the origin says
 * so; otherwise a visitor would get a coding that he cannot read.
 */
export function varyNamesOf(fields: readonly Field[]): readonly string[] | undefined {
  const names = new Set(listMembers((fieldValue(fields, "vary") ?? "").toLowerCase()));
  if (names.has("*")) return undefined;
  if (fieldValue(fields, "content-encoding") !== undefined) names.add("accept-encoding");
  return [...names].sort();
}

/**
 * Adds what caches must know of a response that is sent in several forms, by what the visitor says in the field `name`. Call it last, for
 * it must see every other change.
 */
export function varyingBy(
  fields: readonly Field[],
  name: "Accept" | "Accept-Encoding",
): readonly Field[] {
  const said = listMembers((fieldValue(fields, "vary") ?? "").toLowerCase());
  return said.includes("*") || said.includes(name.toLowerCase())
    ? fields
    : [...fields, ["Vary", name]];
}

/** Returns the names by which a rule tells answers apart, in lower case. */
export function ruleVaryNames({ vary }: Pick<CacheSettings, "vary">): readonly string[] {
  return vary.map((name) => name.toLowerCase());
}

/** Returns whether the response varies by Cookie: then whoever gets it has the same cookies. */
export function variesByCookie(fields: readonly Field[]): boolean {
  const vary = fieldValue(fields, "vary");
  return vary !== undefined && listMembers(vary.toLowerCase()).includes("cookie");
}

/**
 * Returns the request's values of the fields varied by, or null if there are none. An absent field counts as
 * empty.
 */
export function variantOf(
  varyNames: readonly string[],
  selecting: Selecting,
): Readonly<Record<string, string>> | null {
  if (varyNames.length === 0) return null;
  return Object.fromEntries(varyNames.map((name) => [name, selecting(name)]));
}

export function isVariantFor(
  vary: Readonly<Record<string, string>> | null,
  selecting: Selecting,
): boolean {
  if (vary === null) return true;
  for (const name of Object.keys(vary)) if (selecting(name) !== vary[name]) return false;
  return true;
}

const knownCodings = ["br", "gzip", "zstd"];

/**
 * Writes Accept-Encoding in one spelling per set of codings, so that variants are few: the known codings that
 * are accepted, in a fixed order.
 */
export function normalAcceptEncoding(value: string | undefined): string {
  if (value === undefined) return "";
  const known = knownEncodings.get(value);
  if (known !== undefined) return known;
  const normal = normalEncodings(value);
  if (value.length > knownEncodingCharsMax) return normal;
  if (knownEncodings.size >= knownEncodingsMax) knownEncodings.clear();
  knownEncodings.set(ownText(value), normal);
  return normal;
}

/** Copies a value; a slice would retain the whole head that it came in. */
function ownText(value: string): string {
  return Buffer.from(value, "utf8").toString("utf8");
}

/** Values that were read already: most visitors send one of a few. */
const knownEncodings = new Map<string, string>();
const knownEncodingsMax = 256;
const knownEncodingCharsMax = 128;

function normalEncodings(value: string): string {
  const accepted = new Set<string>();
  for (const member of listMembers(value.toLowerCase())) {
    const [coding = "", ...parameters] = member.split(";").map((part) => part.trim());
    if (parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter))) continue;
    accepted.add(coding === "x-gzip" ? "gzip" : coding);
  }
  return knownCodings.filter((coding) => accepted.has(coding)).join(", ");
}
