// What may be stored and how long it is fresh: RFC 9111 §3 and §4.2.1, RFC 9213, RFC 5861, and the site's rules.
//
// No heuristics: a response that states no lifetime is stored only to be revalidated at each use, and only if
// it has a validator.
//
// A rule's `ttl_s` gives a lifetime where the origin states none, and replaces the one it states; for 404 and
// 410 its `negative_ttl_s` does. It lifts no prohibition: none of those below, not `no-cache`, and not a lifetime of zero that must not be exceeded
// (`must-revalidate, max-age=0`), but for the two that the rule's `override` names. It does not hold for an answer to a request that carried cookies of its
// visitor's own; those that a rule varies by are told for all who have the same.
//
// Never stored are `private`, `no-store`, `Vary: *`, answers about a part (206, 416), and Set-Cookie unless
// the rule strips it; one that sets a cookie that the rule varies by is never stripped. Answers to requests with Authorization are stored only if they say public,
// must-revalidate or s-maxage (§3.5). Qualified forms (`private="x"`, `no-cache="x"`) count as unqualified.

import {
  cacheDirectives,
  directiveSeconds,
  isAllowedBy,
  responseDirectives,
  type Directives,
} from "./cache-control.ts";
import type { CacheSettings } from "../serving/effective-devlove.ts";
import { expiresIn, initialAge, type ResponseFacts, type Stored } from "./http-age.ts";
import { parseHttpDate } from "./http-date.ts";
import { fieldValue, type Field } from "./http-fields.ts";
import { variesByCookie, varyNamesOf } from "./http-vary.ts";
import { setsVaryCookie } from "./request-cookies.ts";

export type StorePlan =
  | {
      readonly store: true;
      readonly initialAgeS: number;
      /** 0 if the response has to be revalidated at each use. */
      readonly freshForS: number;
      /** Names in lower case, sorted. */
      readonly varyNames: readonly string[];
    }
  | { readonly store: false; readonly reason: string };

export type StoreRequest = {
  readonly noStore: boolean;
  readonly isAuthorized: boolean;
  /** Whether the origin was asked for a part. */
  readonly isRanged: boolean;
  /**
   * Whether the origin was sent cookies that are not ignored, so that its answer may be for their visitor
   * alone.
   */
  readonly hasCookies: boolean;
};
/**
 * A request that gives no reason against storing: what is refused to it is refused because of the response.
 */
export const plainRequest: StoreRequest = {
  noStore: false,
  isAuthorized: false,
  isRanged: false,
  hasCookies: false,
};
/** The lifetimes that a rule gives, by status; null where it leaves them to the origin. */
export type RuleLifetimes = Pick<CacheSettings, "ttl_s" | "negative_ttl_s" | "override">;
/** The origin's own word. */
const noRule: RuleLifetimes = { ttl_s: null, negative_ttl_s: null, override: [] };

export type StoreSettings = Pick<
  CacheSettings,
  | keyof RuleLifetimes
  | "ignore_set_cookie"
  | "cookies"
  | "vary"
  | "stale_while_revalidate_s"
  | "stale_if_error_s"
>;

const no = (reason: string): StorePlan => ({ store: false, reason });

/** Statuses that are about a part or a stored response, not about what the URL names. */
const ofOtherThanWhole: ReadonlySet<number> = new Set([206, 304, 416]);
/**
 * The statuses whose meaning for caches is known here; 206 and 304 are not responses to store (RFC 9111
 * §5.2.2.3).
 */
const understood: ReadonlySet<number> = new Set([
  200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406,
  407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 425, 426, 428, 429, 431, 451,
  500, 501, 502, 503, 504, 505, 511,
]);
/**
 * The statuses that `ttl_s` is for. Whatever else an origin answers, errors above all, is as fresh as it says
 * itself.
 */
export const lastsByRule: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308]);
/** The statuses that `negative_ttl_s` is for: what the URL names is not there. Other errors are about the moment. */
const negative: ReadonlySet<number> = new Set([404, 410]);
/**
 * The statuses that a 304 can confirm: it says that a GET would be answered with success (RFC 9110 §15.4.5).
 */
const confirmable: ReadonlySet<number> = new Set([200, 203]);

/** Plans whether and how to store the response to a GET. */
export function planStore(
  request: StoreRequest,
  response: ResponseFacts,
  settings: StoreSettings,
): StorePlan {
  const { status, fields } = response;
  if (status < 200 || ofOtherThanWhole.has(status)) return no("status");
  // Ranges are not part of the key, and some origins refuse a range they do not like with a 400; that answer
  // is not for those who ask for the whole.
  if (request.isRanged && status >= 400) return no("range");
  if (request.noStore) return no("request no-store");
  const said = cacheDirectives(fields);
  const { directives } = said;
  const refusal = refusalIn(request, response, directives, settings);
  if (refusal !== undefined) return no(refusal);
  const varyNames = varyNamesOf(fields);
  if (varyNames === undefined) return no("vary");
  if (request.hasCookies && !isForCookies(response, said, settings)) return no("cookie");
  const initialAgeS = initialAge(response);
  const { saidS, freshForS } = lifetimeOf(response, initialAgeS, settings, said);
  if (freshForS > initialAgeS) return { store: true, initialAgeS, freshForS, varyNames };
  const { isForbidden, whileRevalidateS, ifErrorS } = staleRulesOf(fields, said, settings);
  const lastsStale =
    saidS !== undefined &&
    !isForbidden &&
    initialAgeS - freshForS < Math.max(whileRevalidateS, ifErrorS);
  if (lastsStale || isConfirmable(status, fields))
    return { store: true, initialAgeS, freshForS, varyNames };
  if (directives.has("no-cache") || hasPragma(fields, said)) return no("no-cache");
  return no(saidS === undefined ? "no freshness" : "stale");
}

type Lifetime = { readonly saidS: number | undefined; readonly freshForS: number };

type Said = ReturnType<typeof cacheDirectives>;
type Lasting = Pick<ResponseFacts, "status" | "fields" | "receivedAtMs">;

function lifetimeOf(
  response: Lasting,
  initialAgeS: number,
  rule: RuleLifetimes,
  said: Said,
): Lifetime {
  const saidS = saidLifetime(response, said);
  const ttlS = ruledLifetime(response.status, rule);
  if (ttlS === null || isNeverFresh(response, said, rule)) return { saidS, freshForS: saidS ?? 0 };
  // A rule's lifetime counts from now, the origin's from when it was stated.
  return { saidS: ttlS, freshForS: ttlS === 0 ? 0 : initialAgeS + ttlS };
}

function ruledLifetime(status: number, rule: RuleLifetimes): number | null {
  if (lastsByRule.has(status)) return rule.ttl_s;
  return negative.has(status) ? rule.negative_ttl_s : null;
}

/**
 * Directives that forbid the use of a response beyond its lifetime, even without one; `s-maxage` implies that
 * (RFC 9111 §5.2.2.2, §5.2.2.8, §5.2.2.10).
 */
const binding = ["must-revalidate", "proxy-revalidate", "s-maxage"];

/**
 * Returns whether the origin wants to be asked each time, in words that a rule's lifetime must not override.
 * A mere `max-age=0`, or an Expires in the past, is a lifetime like others, only short. `override` names what
 * the site wants overridden nevertheless: `no-cache`, with Pragma, and `max-age=0` that binds. `s-maxage=0`
 * says of shared caches what it means, and stays.
 */
function isNeverFresh(response: Lasting, said: Said, { override }: RuleLifetimes): boolean {
  const { directives } = said;
  if (!override.includes("no-cache"))
    if (directives.has("no-cache") || hasPragma(response.fields, said)) return true;
  const bound = override.includes("max-age") ? ["s-maxage"] : binding;
  return bound.some((name) => directives.has(name)) && lifetimeBesideNoCache(response, said) === 0;
}

/**
 * Returns whether a response says `Pragma: no-cache` and has no Cache-Control. RFC 9111 §5.4 gives that no
 * meaning in responses, but origins that send it mean it. It forbids what a rule would allow, and takes
 * nothing from what the origin itself says by Expires.
 */
function hasPragma(fields: readonly Field[], { isTargeted }: Said): boolean {
  if (isTargeted || fieldValue(fields, "cache-control") !== undefined) return false;
  return responseDirectives(fieldValue(fields, "pragma")).has("no-cache");
}

/**
 * Returns whether an answer to a request with cookies may serve others: by the origin's own explicit word, a
 * lifetime or `public` (RFC 9111 §3), or because it is kept for the same cookies only. A rule never makes it
 * so.
 */
function isForCookies(
  response: Lasting,
  said: Said,
  { ttl_s: ttlS }: Pick<StoreSettings, "ttl_s">,
): boolean {
  if (ttlS !== null) return false;
  return mayServeCookies(response.fields, said) || (saidLifetime(response, said) ?? 0) > 0;
}

/**
 * Returns whether a stored response that is confirmed at each use may serve requests with cookies. A
 * confirmation by its date alone would not tell one visitor's page from another's.
 */
export function mayServeCookies(
  fields: readonly Field[],
  { directives } = cacheDirectives(fields),
): boolean {
  return isAllowedBy(directives, "public") || variesByCookie(fields);
}

/**
 * Returns how long a response that may have been stored under another rule is fresh under this one: never
 * longer than when it was stored.
 */
export function lifetimeUnder(
  stored: Stored & { readonly status: number; readonly headers: readonly Field[] },
  rule: RuleLifetimes,
): number {
  const { status, headers, storedAtMs, initialAgeS, freshForS } = stored;
  if (freshForS === 0) return 0;
  const facts = { status, fields: headers, receivedAtMs: storedAtMs };
  const now = lifetimeOf(facts, initialAgeS, rule, cacheDirectives(headers));
  return Math.min(freshForS, now.freshForS);
}

/** Returns how long a stored response is fresh by the origin's own word. */
export function lifetimeByOrigin(stored: Parameters<typeof lifetimeUnder>[0]): number {
  return lifetimeUnder(stored, noRule);
}

function refusalIn(
  request: StoreRequest,
  { status, fields }: ResponseFacts,
  directives: Directives,
  settings: StoreSettings,
): string | undefined {
  const mustUnderstand = directives.has("must-understand");
  if (mustUnderstand && !understood.has(status)) return "must-understand";
  // §5.2.2.3: a cache that understands the status may ignore the no-store, which is there for the others.
  if (directives.has("no-store") && !mustUnderstand) return "no-store";
  if (directives.has("private")) return "private";
  if (request.isAuthorized && !isForAuthorized(directives)) return "authorization";
  return setsForVisitor(fields, settings) ? "set-cookie" : undefined;
}

/**
 * Returns whether a response sets a cookie for the visitor who asked. A rule may strip cookies, but not those
 * that it varies by: their visitor would go on with another answer than he chose.
 */
export function setsForVisitor(
  fields: readonly Field[],
  settings: Pick<CacheSettings, "ignore_set_cookie" | "cookies">,
): boolean {
  if (fieldValue(fields, "set-cookie") === undefined) return false;
  return !settings.ignore_set_cookie || setsVaryCookie(fields, settings.cookies);
}

/**
 * Returns whether these directives let an answer to a request with Authorization be stored and reused (RFC
 * 9111 §3.5).
 */
function isForAuthorized(directives: Directives): boolean {
  return ["public", "must-revalidate", "s-maxage"].some((name) => isAllowedBy(directives, name));
}

export function mayServeAuthorized(fields: readonly Field[]): boolean {
  return isForAuthorized(cacheDirectives(fields).directives);
}

/**
 * Returns the lifetime of §4.2.1 without heuristics, or undefined if none is stated. `no-cache` is a lifetime
 * of zero (§5.2.2.4).
 */
function saidLifetime(
  response: Pick<ResponseFacts, "fields" | "receivedAtMs">,
  said: Said,
): number | undefined {
  return said.directives.has("no-cache") ? 0 : lifetimeBesideNoCache(response, said);
}

function lifetimeBesideNoCache(
  response: Pick<ResponseFacts, "fields" | "receivedAtMs">,
  { directives, isTargeted }: Said,
): number | undefined {
  return (
    directiveSeconds(directives, "s-maxage") ??
    directiveSeconds(directives, "max-age") ??
    (isTargeted ? undefined : expiresIn(response))
  );
}

export type StaleRules = {
  /** RFC 9111 §4.2.4: the response must not be used stale, whatever a rule allows. */
  readonly isForbidden: boolean;
  readonly whileRevalidateS: number;
  readonly ifErrorS: number;
};

/**
 * Returns how a response may be used stale (RFC 5861). A site's rule replaces the origin's word, as with
 * `ttl_s`, but lifts no prohibition.
 */
export function staleRules(
  fields: readonly Field[],
  settings: Pick<CacheSettings, "stale_while_revalidate_s" | "stale_if_error_s">,
): StaleRules {
  return staleRulesOf(fields, cacheDirectives(fields), settings);
}

function staleRulesOf(
  fields: readonly Field[],
  said: Said,
  settings: Pick<CacheSettings, "stale_while_revalidate_s" | "stale_if_error_s">,
): StaleRules {
  const { directives } = said;
  return {
    isForbidden:
      ["no-cache", ...binding].some((name) => directives.has(name)) || hasPragma(fields, said),
    whileRevalidateS:
      settings.stale_while_revalidate_s ||
      (directiveSeconds(directives, "stale-while-revalidate") ?? 0),
    ifErrorS: settings.stale_if_error_s || (directiveSeconds(directives, "stale-if-error") ?? 0),
  };
}

/**
 * Returns the fields that ask whether a stored response still holds (RFC 9111 §4.3.1); empty if nothing can
 * confirm it.
 */
export function conditionsFor(status: number, stored: readonly Field[]): readonly Field[] {
  if (!confirmable.has(status)) return [];
  const etag = fieldValue(stored, "etag");
  const modified = fieldValue(stored, "last-modified");
  const conditions: Field[] = [];
  if (etag !== undefined) conditions.push(["If-None-Match", etag]);
  if (modified !== undefined && parseHttpDate(modified) !== undefined)
    conditions.push(["If-Modified-Since", modified]);
  return conditions;
}

function isConfirmable(status: number, fields: readonly Field[]): boolean {
  return conditionsFor(status, fields).length > 0;
}
