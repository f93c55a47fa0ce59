// Finds which redirect and which cache rule a request meets.
//
// Compiled once per configuration and asked once per request. Paths are as received: canonicalPath is applied
// here.

import { canonicalPath, compilePathPattern } from "./path-pattern.ts";
import type { TextMatcher } from "./path-pattern.ts";
import { readingsOf } from "../http/path-readings.ts";
import {
  editedNames,
  editsInTurn,
  editsOfNotModified,
  requestEditsName,
  type HeaderEdits,
} from "../http/header-edits.ts";
import { lifetimeUnder } from "../http/http-cache.ts";
import { ruleVaryNames } from "../http/http-vary.ts";
import { compileCookieRule, type CookieJudge } from "../http/request-cookies.ts";
import type { RequestTarget } from "../http/request-path.ts";
import { CACHE_DEFAULTS } from "./cache-defaults.ts";
import type { CacheSettings, Redirect, SiteConfig } from "./effective-devlove.ts";
import { parsePauseEnd } from "./pause-end.ts";
import { compileQueryRule, textOfRule } from "./query-rule.ts";
import { choiceName, compileMatch, type MatchJudge, type RuledRequest } from "./rule-match.ts";

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
  /** The request headers by which the rule tells answers apart, in lower case. */
  readonly varyNames: readonly string[];
  /** Returns what is said of the headers of an answer with this status: by the rule, and then by the site. */
  readonly answerEdits: (status: number) => HeaderEdits;
  /** A name for what the rule says of the headers of requests, "" if it says nothing. */
  readonly requestEdits: string;
  /** The request headers of which the origin is told the same for all visitors, in lower case: nothing varies by them. */
  readonly toldAlike: ReadonlySet<string>;
  /** Gives a stored response the lifetime it has under this rule, whatever rule it was stored under. */
  readonly inForce: <S extends StoredResponse>(stored: S) => S;
  /**
   * What the fields of the request have decided in the choice of this rule, "" if they had no part in it and
   * the rule is that of all requests for the target. A stored response answers only where the same was decided.
   */
  readonly choice: string;
};

/**
 * The name of the query rule among the fields that a stored response varies by; no field can have this name.
 */
export const queryRuleName = ":query-rule";

type StoredResponse = Parameters<typeof lifetimeUnder>[0];

type Target = Pick<RequestTarget, "rawPath" | "rawQuery">;

export type SiteRoutes = {
  /** The first redirect whose `from` matches. */
  readonly redirect: (rawPath: string) => Redirect | undefined;
  /**
   * Returns the first rule whose `path` and `match` hold, otherwise the site's `cache.default`. If
   * applications may read the target in several ways, a rule with `bypass` that one of the readings meets is
   * returned. If the readings do not all meet the same rule, no rule holds, only the origin's own word; and
   * nothing but passing on is right for a request with a cookie if one of these rules bypasses or varies by
   * cookies, and for any request if one of them varies by headers, or
   * tells the origin its own.
   */
  readonly cache: (target: Target, request: RuledRequest) => CacheRoute;
  /** Returns the queries under which answers to GET may be stored for a target, whatever fields are sent. */
  readonly storedQueries: (target: Target) => readonly string[];
  /** Until when the cache takes no part in any request, by the wall clock; in the past where it is not paused. */
  readonly pausedUntilMs: number;
};

export function compileSite(site: Pick<SiteConfig, "redirects" | "cache" | "headers">): SiteRoutes {
  const { headers } = site;
  const eachRedirect = eachMatch(site.redirects, (redirect) => redirect.from);
  const rules = site.cache.rules.map((rule): RuleRow => ({
    path: rule.path,
    route: cacheRoute(rule, headers),
    match: rule.match === null ? undefined : compileMatch(rule.match),
  }));
  const eachRule = eachMatch(rules, ({ path }) => path);
  const fallback = cacheRoute(site.cache.default, headers);
  const unruled = cacheRoute(CACHE_DEFAULTS, headers);
  const unruledBypass = cacheRoute({ ...CACHE_DEFAULTS, bypass: true }, headers);
  const unruledWithCookies = cacheRoute({ ...CACHE_DEFAULTS, cookies: allBypass }, headers);
  /** The rules that the readings of a target may meet, and whether it is sure that they are the ones meant. */
  const meet = ({ rawPath, rawQuery }: Target, request: RuledRequest | undefined): Met => {
    const { others, isTwisted, hiddenQuery } = readingsOf(rawPath);
    const met: Met = { routes: new Set(), decided: [], isTwisted: isTwisted && others.length > 0 };
    for (const path of [canonicalPath(rawPath), ...others]) {
      let isSure = false;
      eachRule(path, (row) => {
        isSure = meets(row, { rawQuery, hiddenQuery, request }, met);
        return isSure;
      });
      if (!isSure) met.routes.add(fallback);
    }
    return met;
  };
  const { paused_until: pausedUntil } = site.cache;
  return {
    pausedUntilMs: pausedUntil === null ? 0 : (parsePauseEnd(pausedUntil) ?? 0),
    redirect: (rawPath) => {
      let found: Redirect | undefined;
      eachRedirect(canonicalPath(rawPath), (redirect) => {
        found = redirect;
        return true;
      });
      return found;
    },
    cache: (target, request) => {
      const { routes, decided, isTwisted } = meet(target, request);
      const all = [...routes];
      const bypass = all.find(({ settings }) => settings.bypass);
      const [first = fallback] = all;
      let route = all.some(tellsCookiesApart) ? unruledWithCookies : unruled;
      // The origin's own word does not say by which headers its answers differ.
      if (all.some(saysOfRequests)) route = unruledBypass;
      if (bypass !== undefined) route = bypass;
      else if (all.length === 1 && !isTwisted) route = first;
      return decided.length === 0 ? route : { ...route, choice: choiceName(decided) };
    },
    storedQueries: (target) => {
      const { routes, isTwisted } = meet(target, undefined);
      const queries = [...routes].map(({ normalizeQuery }) => normalizeQuery(target.rawQuery));
      // Where several rules may be meant, none leaves anything out.
      if (routes.size > 1 || isTwisted) queries.push(target.rawQuery);
      return [...new Set(queries)];
    },
  };
}

type RuleRow = {
  readonly path: string;
  readonly route: CacheRoute;
  readonly match: MatchJudge | undefined;
};
type Met = {
  readonly routes: Set<CacheRoute>;
  /** What the fields of the request decided. */
  readonly decided: string[];
  readonly isTwisted: boolean;
};
type Asked = {
  readonly rawQuery: string;
  readonly hiddenQuery: string;
  /** Undefined if it may be any GET. */
  readonly request: RuledRequest | undefined;
};

/** Adds the rule if the request may meet it; returns whether it surely does. */
function meets(
  { route, match }: RuleRow,
  { rawQuery, hiddenQuery, request }: Asked,
  { routes, decided }: Met,
): boolean {
  if (match === undefined) {
    routes.add(route);
    return true;
  }
  let said = match.query(rawQuery);
  // A server that ends the path there takes this for the query, others add it to the query, or do neither.
  if (hiddenQuery !== "" && match.query(hiddenQuery) !== match.query("")) said = "unsure";
  if (said === "no" || !match.method(request?.method ?? "GET")) return false;
  if (request === undefined && match.fields !== undefined) said = "unsure";
  else if (request !== undefined && match.fields !== undefined) {
    const { holds, text } = match.fields;
    const isHeld = holds(request.fields);
    decided.push(`${isHeld ? "+" : "-"}${text}`);
    if (!isHeld) return false;
  }
  routes.add(route);
  return said === "yes";
}

const allBypass: CacheSettings["cookies"] = { bypass: ["*"], vary: [], ignore: [] };

function tellsCookiesApart({ settings: { cookies } }: CacheRoute): boolean {
  return cookies.bypass.length + cookies.vary.length > 0;
}

function saysOfRequests({ varyNames, requestEdits }: CacheRoute): boolean {
  return varyNames.length > 0 || requestEdits !== "";
}

function cacheRoute(settings: CacheSettings, ofSite: HeaderEdits): CacheRoute {
  const { query, headers } = settings;
  const ofAnswers = editsInTurn(headers.response, ofSite);
  const ofNotModified = editsInTurn(editsOfNotModified(headers.response), ofSite);
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
    varyNames: ruleVaryNames(settings),
    answerEdits: (status) => (status === 304 ? ofNotModified : ofAnswers),
    requestEdits: requestEditsName(headers.request),
    toldAlike: editedNames(headers.request),
    choice: "",
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

/**
 * Makes a function that hands the items whose pattern matches to `take`, in order, until it returns true. All
 * literal patterns together cost one map look-up; only those with wildcards are tried one by one.
 */
function eachMatch<T>(
  items: readonly T[],
  patternOf: (item: T) => string,
): (path: string, take: (item: T) => boolean) => void {
  type Row = { readonly at: number; readonly item: T; readonly matcher: TextMatcher };
  const rows = items.map((item, at): Row => ({
    at,
    item,
    matcher: compilePathPattern(patternOf(item)),
  }));
  const literals = new Map<string, Row[]>();
  for (const row of rows) {
    const { literal } = row.matcher;
    if (literal === undefined) continue;
    const same = literals.get(literal);
    if (same === undefined) literals.set(literal, [row]);
    else same.push(row);
  }
  const wild = rows.filter((row) => row.matcher.literal === undefined);
  return (path, take) => {
    const exact = literals.get(path) ?? [];
    let next = 0;
    for (const row of wild) {
      for (let same = exact[next]; same !== undefined && same.at < row.at; same = exact[++next])
        if (take(same.item)) return;
      if (row.matcher.matches(path) && take(row.item)) return;
    }
    for (const same of exact.slice(next)) if (take(same.item)) return;
  };
}
