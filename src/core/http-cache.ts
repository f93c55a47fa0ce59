// What may be stored, under which variant, and how long it is fresh: RFC 9111 and RFC 9213 in their simple form.
//
// Stored is a complete 200 answer to GET with explicit freshness: no heuristics. Authorization, Set-Cookie, `private` and `no-store` are
// never stored. Qualified forms (`private="x"`, `no-cache="x"`) count as unqualified.

import { cacheDirectives, directiveSeconds, parseCacheControl } from "./cache-control.ts";
import { fieldValue, fieldValues, listMembers, type Field } from "./http-fields.ts";
import { parseHttpDate } from "./http-date.ts";
import type { CacheSettings } from "./effective-devlove.ts";

export type ResponseFacts = {
  readonly status: number;
  readonly fields: readonly Field[];
  /** Wall clock, ms: when the request went out and when the head came in. */
  readonly requestedAtMs: number;
  readonly receivedAtMs: number;
};

export type StorePlan =
  | {
      readonly store: true;
      readonly initialAgeS: number;
      readonly freshForS: number;
      /** Names in lower case, sorted. */
      readonly varyNames: readonly string[];
    }
  | { readonly store: false; readonly reason: string };

const no = (reason: string): StorePlan => ({ store: false, reason });

/** `requestFields` are those sent to the origin; the method was GET. */
export function planStore(
  requestFields: readonly Field[],
  response: ResponseFacts,
  settings: Pick<CacheSettings, "ttl_s" | "ignore_set_cookie">,
): StorePlan {
  const { status, fields } = response;
  if (status !== 200) return no("status");
  if (fieldValue(requestFields, "authorization") !== undefined) return no("authorization");
  if (parseCacheControl(fieldValue(requestFields, "cache-control")).has("no-store"))
    return no("request no-store");
  const { directives, isTargeted } = cacheDirectives(fields);
  if (directives.has("no-store")) return no("no-store");
  if (directives.has("private")) return no("private");
  if (fieldValue(fields, "set-cookie") !== undefined && !settings.ignore_set_cookie)
    return no("set-cookie");
  const varyNames = varyNamesOf(fields);
  if (varyNames === undefined) return no("vary");
  const initialAgeS = initialAge(response);
  if (settings.ttl_s !== null) {
    return settings.ttl_s === 0
      ? no("stale")
      : { store: true, initialAgeS, freshForS: initialAgeS + settings.ttl_s, varyNames };
  }
  if (directives.has("no-cache")) return no("no-cache");
  const freshForS =
    directiveSeconds(directives, "s-maxage") ??
    directiveSeconds(directives, "max-age") ??
    (isTargeted ? undefined : expiresIn(response)) ??
    0;
  return freshForS > initialAgeS
    ? { store: true, initialAgeS, freshForS, varyNames }
    : no("no freshness");
}

/** RFC 9111 §5.3: an invalid Expires is in the past, and so is one of several that differ. */
function expiresIn({ fields, receivedAtMs }: ResponseFacts): number | undefined {
  const said = fieldValues(fields, "expires");
  if (said.length === 0) return undefined;
  const expires = new Set(said).size === 1 ? parseHttpDate(said[0] ?? "") : undefined;
  if (expires === undefined) return 0;
  return Math.max(0, Math.floor((expires - dateOf(fields, receivedAtMs)) / 1_000));
}

function dateOf(fields: readonly Field[], receivedAtMs: number): number {
  return parseHttpDate(fieldValue(fields, "date") ?? "") ?? receivedAtMs;
}

/** RFC 9111 §4.2.3, corrected_initial_age. */
function initialAge({ fields, requestedAtMs, receivedAtMs }: ResponseFacts): number {
  const said = fieldValues(fields, "age")[0]?.split(",")[0]?.trim() ?? "";
  const ageS = /^\d{1,10}$/.test(said) ? Number(said) : 0;
  const apparentS = Math.floor((receivedAtMs - dateOf(fields, receivedAtMs)) / 1_000);
  const delayS = Math.floor(Math.max(0, receivedAtMs - requestedAtMs) / 1_000);
  return Math.max(0, apparentS, ageS + delayS);
}

/** Undefined for `Vary: *`. An encoded body varies by Accept-Encoding whether or not the origin says so: else one visitor's gzip is another's noise. */
function varyNamesOf(fields: readonly Field[]): readonly string[] | undefined {
  const names = new Set(listMembers((fieldValue(fields, "vary") ?? "").toLowerCase()));
  if (names.has("*")) return undefined;
  if (fieldValue(fields, "content-encoding") !== undefined) names.add("accept-encoding");
  return [...names].sort();
}

/** The request's side of a variant; null where there is none. An absent field is an empty one. */
export function variantOf(
  varyNames: readonly string[],
  requestFields: readonly Field[],
): Readonly<Record<string, string>> | null {
  if (varyNames.length === 0) return null;
  return Object.fromEntries(varyNames.map((name) => [name, fieldValue(requestFields, name) ?? ""]));
}

/** RFC 9111 §4.1. */
export function isVariantFor(
  vary: Readonly<Record<string, string>> | null,
  requestFields: readonly Field[],
): boolean {
  return (
    vary === null ||
    Object.entries(vary).every(([name, value]) => (fieldValue(requestFields, name) ?? "") === value)
  );
}

export type Stored = {
  readonly storedAtMs: number;
  readonly initialAgeS: number;
  readonly freshForS: number;
};

/** Seconds; Infinity for what was stored in the future, which a clock that was set back makes possible. */
export function currentAgeS(stored: Stored, nowMs: number): number {
  const residentMs = nowMs - stored.storedAtMs;
  return residentMs < 0 ? Infinity : stored.initialAgeS + Math.floor(residentMs / 1_000);
}

export function isFresh(stored: Stored, nowMs: number): boolean {
  return currentAgeS(stored, nowMs) < stored.freshForS;
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
