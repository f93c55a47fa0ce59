// Finds which redirect and which cache rule a path meets, and what is left of its query in the cache key.
//
// Compiled once per configuration and asked once per request. Paths are as received: canonicalPath is applied
// here.

import {
  canonicalName,
  canonicalPath,
  compileNamePattern,
  compilePathPattern,
} from "./path-pattern.ts";
import type { TextMatcher } from "./path-pattern.ts";
import { readingsOf } from "../http/path-readings.ts";
import { lifetimeUnder } from "../http/http-cache.ts";
import { compileCookieRule, type CookieJudge } from "../http/request-cookies.ts";
import { CACHE_DEFAULTS } from "./cache-defaults.ts";
import type { CacheSettings, QueryRule, Redirect, SiteConfig } from "./effective-devlove.ts";

export type CacheRoute = {
  readonly settings: CacheSettings;
  /** See compileQueryRule. */
  readonly normalizeQuery: (rawQuery: string) => string;
  /**
   * The query rule as text, "" if it leaves nothing out. What was stored under another rule may belong to a
   * query that this one tells apart.
   */
  readonly queryRule: string;
  /** Judges the cookies of a request under this rule. */
  readonly cookies: CookieJudge;
  /** Gives a stored response the lifetime it has under this rule, whatever rule it was stored under. */
  readonly inForce: <S extends StoredResponse>(stored: S) => S;
};

/**
 * The name of the query rule among the fields that a stored response varies by; no field can have this name.
 */
export const queryRuleName = ":query-rule";

type StoredResponse = Parameters<typeof lifetimeUnder>[0];

export type SiteRoutes = {
  /** The first redirect whose `from` matches. */
  readonly redirect: (rawPath: string) => Redirect | undefined;
  /**
   * Returns the first rule whose `path` matches, otherwise the site's `cache.default`. If applications may
   * read the path in several ways, a rule with `bypass` that one of the readings meets is returned. If the
   * readings do not all meet the same rule, no rule holds, only the origin's own word; and nothing but passing
   * on is right for a request with a cookie if one of these rules bypasses or varies by cookies.
   */
  readonly cache: (rawPath: string) => CacheRoute;
};

export function compileSite(site: Pick<SiteConfig, "redirects" | "cache">): SiteRoutes {
  const redirects = firstMatch(site.redirects, (redirect) => redirect.from);
  const rules = firstMatch(
    site.cache.rules.map((rule) => ({ path: rule.path, route: cacheRoute(rule) })),
    (rule) => rule.path,
  );
  const fallback = cacheRoute(site.cache.default);
  const unruled = cacheRoute(CACHE_DEFAULTS);
  const unruledWithCookies = cacheRoute({ ...CACHE_DEFAULTS, cookies: allBypass });
  const routeOf = (path: string): CacheRoute => rules(path)?.route ?? fallback;
  return {
    redirect: (rawPath) => redirects(canonicalPath(rawPath)),
    cache: (rawPath) => {
      const route = routeOf(canonicalPath(rawPath));
      if (route.settings.bypass) return route;
      const { others, isTwisted } = readingsOf(rawPath);
      if (others.length === 0) return route;
      const routes = others.map(routeOf);
      const bypass = routes.find(({ settings }) => settings.bypass);
      if (bypass !== undefined) return bypass;
      if (!isTwisted && routes.every((other) => other === route)) return route;
      return [route, ...routes].some(tellsCookiesApart) ? unruledWithCookies : unruled;
    },
  };
}

const allBypass: CacheSettings["cookies"] = { bypass: ["*"], vary: [], ignore: [] };

function tellsCookiesApart({ settings: { cookies } }: CacheRoute): boolean {
  return cookies.bypass.length + cookies.vary.length > 0;
}

function cacheRoute(settings: CacheSettings): CacheRoute {
  const { query } = settings;
  // What is made is remembered: a hit asks for it each time, and reading what the origin said takes a
  // microsecond.
  const known = new WeakMap<StoredResponse, StoredResponse>();
  const underRule = <S extends StoredResponse>(stored: S): S => {
    const freshForS = lifetimeUnder(stored, settings);
    return freshForS === stored.freshForS ? stored : { ...stored, freshForS };
  };
  return {
    settings,
    normalizeQuery: compileQueryRule(query),
    queryRule: textOfRule(query),
    cookies: compileCookieRule(settings.cookies),
    inForce: <S extends StoredResponse>(stored: S): S => {
      const before = known.get(stored);
      // Made of this very response below.
      if (before !== undefined) return before as S;
      const made = underRule(stored);
      known.set(stored, made);
      return made;
    },
  };
}

/** Writes a rule in characters that the normalizing of field values leaves alone. */
function textOfRule(rule: QueryRule): string {
  const text = (names: readonly string[]): string =>
    names.map((name) => encodeURIComponent(name.toWellFormed())).join("|");
  const sort = rule.sort ? "sort:" : "";
  if ("keep" in rule) return `${sort}keep:${text(rule.keep)}`;
  const { ignore = [] } = rule;
  return ignore.length === 0 ? sort : `${sort}ignore:${text(ignore)}`;
}

/**
 * Finds the first item whose pattern matches. All literal patterns together cost one map look-up; only those
 * with wildcards are tried one by one.
 */
function firstMatch<T>(
  items: readonly T[],
  patternOf: (item: T) => string,
): (path: string) => T | undefined {
  type Row = { readonly at: number; readonly item: T; readonly matcher: TextMatcher };
  const rows = items.map((item, at): Row => ({
    at,
    item,
    matcher: compilePathPattern(patternOf(item)),
  }));
  const literals = new Map<string, Row>();
  for (const row of rows) {
    const { literal } = row.matcher;
    if (literal !== undefined && !literals.has(literal)) literals.set(literal, row);
  }
  const wild = rows.filter((row) => row.matcher.literal === undefined);
  return (path) => {
    const exact = literals.get(path);
    for (const row of wild) {
      if (exact !== undefined && row.at > exact.at) break;
      if (row.matcher.matches(path)) return row.item;
    }
    return exact?.item;
  };
}

/**
 * Makes a function that returns the query without what the rule leaves out; the bytes of the rest stay as they
 * are, and so does their order unless the rule sorts them. `rawQuery` is without its `?`. Names are compared decoded (`%75tm_source` is utm_source),
 * because an origin decodes them too; otherwise `keep` would merge what the origin tells apart.
 *
 * Whatever an origin may read as a parameter that counts stays in: a visitor who could hide it from the key
 * would have his page served to all. Each piece with `;` stays too, because some servers end a parameter
 * there (unlike WHATWG, as older frameworks do).
 */
function compileQueryRule(rule: QueryRule): (rawQuery: string) => string {
  const keeps = "keep" in rule;
  const written = keeps ? [...rule.keep, ...rule.keep.map(lowerCase)] : (rule.ignore ?? []);
  const patterns = [...new Set(written)].map(compileNamePattern);
  const inOrder = rule.sort ? sorted : (pieces: readonly string[]) => pieces;
  if (patterns.length === 0) {
    if (keeps) return () => "";
    return rule.sort ? (rawQuery) => sorted(rawQuery.split("&")).join("&") : (rawQuery) => rawQuery;
  }
  const isNamed = (piece: string): boolean => {
    const equals = piece.indexOf("=");
    const name = canonicalName(equals < 0 ? piece : piece.slice(0, equals));
    const names = keeps ? readNames(name) : [name];
    return patterns.some((pattern) => names.some((one) => pattern.matches(one)));
  };
  return (rawQuery) =>
    inOrder(
      rawQuery.split("&").filter((piece) => piece.includes(";") || isNamed(piece) === keeps),
    ).join("&");
}

/**
 * Sorts the parameters by name. Those that a framework may read under one name stay in their order, because
 * it tells the first from the last; where it is not sure which those are, all stay as they are.
 */
function sorted(pieces: readonly string[]): readonly string[] {
  if (pieces.length < 2) return pieces;
  const placed: { readonly piece: string; readonly place: string }[] = [];
  for (const piece of pieces) {
    const place = placeOf(piece);
    if (place === undefined) return pieces;
    placed.push({ piece, place });
  }
  return placed
    .toSorted((a, b) => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0))
    .map(({ piece }) => piece);
}

/** A name that all frameworks read alike, but for capitals and that `a[]` and `a[b]` are parts of `a`. */
const plainName = /^([\w-]+)(?:\[[\w-]*\])*$/;

/** Returns one text for all names that some framework reads as one; undefined if that is not sure. */
function placeOf(piece: string): string | undefined {
  if (piece.includes(";")) return undefined;
  const [rawName = ""] = piece.split("=", 1);
  const name = plainName.exec(canonicalName(rawName))?.[1];
  return name === undefined ? undefined : lowerCase(name);
}

/**
 * Returns the names as frameworks read them. `user[]` and `user[id]` are the array `user` (PHP, Rails, qs).
 * PHP skips leading blanks, ends at NUL, and spells `.`, blank and `[` as `_`. ASP.NET ignores case.
 */
function readNames(name: string): readonly string[] {
  if (/^[a-z0-9_]*$/.test(name)) return [name];
  const trimmed = name.replace(/^ +/, "").replace(/\0[^]*$/, "");
  const array = trimmed.replace(/(?<=[^])\[[^]*$/, "");
  const names = [name, trimmed, array];
  for (const one of [trimmed, array]) names.push(one.replaceAll(/[. []/g, "_"));
  return [...new Set([...names, ...names.map(lowerCase)])];
}

const lowerCase = (text: string): string =>
  text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
