// Finds which redirect and which cache rule a request meets.
//
// Compiled once per configuration and asked once per request. Paths are as received: canonicalPath is applied
// here.

import { canonicalPath, compilePathPattern } from "./path-pattern.ts";
import type { TextMatcher } from "./path-pattern.ts";
import { readingsOf } from "../http/path-readings.ts";
import type { RequestTarget } from "../http/request-path.ts";
import { widthReader } from "../images/picture-width.ts";
import { CACHE_DEFAULTS } from "./cache-defaults.ts";
import type { HeaderEdits } from "../http/header-edits.ts";
import { byAnswer, cacheRoute, type CacheRoute, type TypedRule } from "./cache-route.ts";
import type { CacheRule, CacheSettings, Redirect, SiteConfig } from "./effective-devlove.ts";
import { compileMediaTypes } from "./media-types.ts";
import { parsePauseEnd } from "./pause-end.ts";
import { choiceName, compileMatch, type MatchJudge, type RuledRequest } from "./rule-match.ts";

/**
 * The name of the query rule among the fields that a stored response varies by; no field can have this name.
 */
export const queryRuleName = ":query-rule";

type Target = Pick<RequestTarget, "rawPath" | "rawQuery">;

export type SiteRoutes = {
  /**
   * Returns what a target asks for here: of a picture that is read, a listed width is taken off the query. All else goes
   * by this target. Of one that was returned, the same is returned.
   */
  readonly target: (sent: RequestTarget, method: string) => RequestTarget;
  /** The first redirect whose `from` matches. */
  readonly redirect: (rawPath: string) => Redirect | undefined;
  /**
   * Returns the first rule whose `path` and `match` hold, otherwise the site's `cache.default`. Rules before it that ask for a
   * media type are joined with it, since they are chosen when there is an answer (cache-route.ts). If
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

export function compileSite(
  site: Pick<SiteConfig, "redirects" | "cache" | "headers" | "images">,
): SiteRoutes {
  const { headers, images } = site;
  const { read, spellings } = widthReader(images);
  const eachRedirect = eachMatch(site.redirects, (redirect) => redirect.from);
  const rules = site.cache.rules.map((rule): RuleRow => ({
    path: rule.path,
    rule: typedRule(rule) ?? cacheRoute(rule, headers),
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
    const met: Met = {
      routes: new Set(),
      decided: [],
      typed: [],
      isMixed: isTwisted && others.length > 0,
    };
    const readings = [canonicalPath(rawPath), ...others].map((path) => {
      const reading: Reading = { isSure: false, typed: [] };
      eachRule(path, (row) => meets(row, { rawQuery, hiddenQuery, request }, met, reading));
      if (!reading.isSure) met.routes.add(fallback);
      return reading.typed;
    });
    met.typed = readings[0] ?? [];
    const isOne = readings.every((typed) => isSameList(typed, met.typed));
    if (met.routes.size > 1 || !isOne) met.isMixed = true;
    return met;
  };
  const underTypes = joinedRoutes([...rules.map(({ rule }) => rule), fallback], headers);
  const { paused_until: pausedUntil } = site.cache;
  return {
    target: read,
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
      const { routes, decided, typed, isMixed } = meet(target, request);
      const all = [...routes];
      const bypass = all.find(({ settings }) => settings.bypass);
      const [first = fallback] = all;
      let route = all.some(tellsCookiesApart) ? unruledWithCookies : unruled;
      // The origin's own word does not say by which headers its answers differ.
      if (all.some(saysOfRequests)) route = unruledBypass;
      if (bypass !== undefined) route = bypass;
      if (!isMixed) route = underTypes(first, typed);
      return decided.length === 0 ? route : { ...route, choice: choiceName(decided) };
    },
    storedQueries: (target) => [
      ...new Set(spellings(target).flatMap((one) => queriesUnder(meet(one, undefined), one))),
    ],
  };
}

function queriesUnder({ routes, isMixed }: Met, { rawQuery }: Target): readonly string[] {
  const queries = [...routes].map(({ normalizeQuery }) => normalizeQuery(rawQuery));
  // Where several rules may be meant, none leaves anything out.
  return isMixed ? [...queries, rawQuery] : queries;
}

type RuleRow = {
  readonly path: string;
  readonly rule: CacheRoute | TypedRule;
  readonly match: MatchJudge | undefined;
};
type Met = {
  readonly routes: Set<CacheRoute>;
  /** What the fields of the request decided. */
  readonly decided: string[];
  /** The rules that an answer may have by its type, if nothing is mixed. */
  typed: readonly TypedRule[];
  /** Several rules may be meant. */
  isMixed: boolean;
};
/** One reading of a path. */
type Reading = { isSure: boolean; readonly typed: TypedRule[] };
type Asked = {
  readonly rawQuery: string;
  readonly hiddenQuery: string;
  /** Undefined if it may be any GET. */
  readonly request: RuledRequest | undefined;
};

/** Adds the rule if the request may meet it; returns whether it surely does, whatever the answer is. */
function meets(
  { rule, match }: RuleRow,
  { rawQuery, hiddenQuery, request }: Asked,
  met: Met,
  reading: Reading,
): boolean {
  let said = match?.query(rawQuery) ?? "yes";
  // A server that ends the path there takes this for the query, others add it to the query, or do neither.
  if (hiddenQuery !== "" && match?.query(hiddenQuery) !== match?.query("")) said = "unsure";
  if (said === "no" || match?.method(request?.method ?? "GET") === false) return false;
  if (match?.fields !== undefined) {
    if (request === undefined) said = "unsure";
    else {
      const { holds, text } = match.fields;
      const isHeld = holds(request.fields);
      met.decided.push(`${isHeld ? "+" : "-"}${text}`);
      if (!isHeld) return false;
    }
  }
  // By its name in the cache, nobody could tell any more that it was asked for under this rule.
  if (match !== undefined && match.queryText !== "" && leavesOut(rule))
    met.decided.push(`?${match.queryText}`);
  if ("types" in rule) {
    if (said === "yes") reading.typed.push(rule);
    else met.isMixed = true;
    return false;
  }
  met.routes.add(rule);
  reading.isSure = said === "yes";
  return reading.isSure;
}

function leavesOut(rule: CacheRoute | TypedRule): boolean {
  return "queryRule" in rule && rule.queryRule !== "";
}

function isSameList(one: readonly TypedRule[], other: readonly TypedRule[]): boolean {
  return one.length === other.length && one.every((rule, at) => rule === other[at]);
}

function typedRule(rule: CacheRule): TypedRule | undefined {
  const names = rule.match?.media_type ?? [];
  return names.length === 0 ? undefined : { settings: rule, types: compileMediaTypes(names) };
}

/** Headers and parameters of requests choose among rules by type, so visitors may ask for many combinations. */
const joinedMax = 256;

/** Makes a function that joins the rule of a request with those that its answer may have; what it made is remembered. */
function joinedRoutes(
  rules: readonly (CacheRoute | TypedRule)[],
  ofSite: HeaderEdits,
): (route: CacheRoute, typed: readonly TypedRule[]) => CacheRoute {
  const numbers = new Map(rules.map((rule, at) => [rule, at]));
  const known = new Map<string, CacheRoute>();
  return (route, typed) => {
    if (typed.length === 0) return route;
    const name = [route, ...typed].map((rule) => numbers.get(rule)).join(" ");
    const before = known.get(name);
    if (before !== undefined) return before;
    const made = byAnswer(route, typed, ofSite);
    if (known.size >= joinedMax) known.clear();
    known.set(name, made);
    return made;
  };
}

const allBypass: CacheSettings["cookies"] = { bypass: ["*"], vary: [], ignore: [] };

function tellsCookiesApart({ settings: { cookies } }: CacheRoute): boolean {
  return cookies.bypass.length + cookies.vary.length > 0;
}

function saysOfRequests({ varyNames, requestEdits }: CacheRoute): boolean {
  return varyNames.length > 0 || requestEdits !== "";
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
