// Which variant a request selects (RFC 9111 §4.1), with values in one spelling where the spellings mean the same.

import { fieldValue, listMembers, type Field } from "./http-fields.ts";

/** Name in lower case → the request's value in its one spelling; "" where there is none. */
export type Selecting = (name: string) => string;

export function selectingOf(requestFields: readonly Field[]): Selecting {
  return selectingBy((name) => fieldValue(requestFields, name));
}

/** Values are looked up and normalized when they are first asked for: most requests meet few that anything varies by. */
export function selectingBy(lookUp: (name: string) => string | undefined): Selecting {
  const known = new Map<string, string>();
  return (name) => {
    let value = known.get(name);
    if (value === undefined) {
      const said = lookUp(name);
      value = said === undefined ? "" : normal(name, said);
      known.set(name, value);
    }
    return value;
  };
}

/** Lists by their definition: blanks around members and empty ones mean nothing (RFC 9110 §5.6.1). */
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

/** A comma in them is a character like any other. */
const singles: ReadonlySet<string> = new Set([
  "authorization",
  "cookie",
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

/** Case, blanks and the order of languages of equal weight mean nothing (RFC 9110 §12.4.2, §12.5.4). */
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

/** Undefined for `Vary: *`. An encoded body varies by Accept-Encoding whether or not the origin says so: else one visitor's gzip is another's noise. */
export function varyNamesOf(fields: readonly Field[]): readonly string[] | undefined {
  const names = new Set(listMembers((fieldValue(fields, "vary") ?? "").toLowerCase()));
  if (names.has("*")) return undefined;
  if (fieldValue(fields, "content-encoding") !== undefined) names.add("accept-encoding");
  return [...names].sort();
}

/** Whoever gets it has the same cookies. */
export function variesByCookie(fields: readonly Field[]): boolean {
  const vary = fieldValue(fields, "vary");
  return vary !== undefined && listMembers(vary.toLowerCase()).includes("cookie");
}

/** The request's side of a variant; null where there is none. An absent field is an empty one. */
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
  return vary === null || Object.entries(vary).every(([name, value]) => selecting(name) === value);
}

const knownCodings = ["br", "gzip", "zstd"];

/** Accept-Encoding in one spelling per set of codings, so that variants are few: those of ours that are accepted, in order. */
export function normalAcceptEncoding(value: string | undefined): string {
  const accepted = new Set<string>();
  for (const member of listMembers((value ?? "").toLowerCase())) {
    const [coding = "", ...parameters] = member.split(";").map((part) => part.trim());
    if (parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter))) continue;
    accepted.add(coding === "x-gzip" ? "gzip" : coding);
  }
  return knownCodings.filter((coding) => accepted.has(coding)).join(", ");
}
