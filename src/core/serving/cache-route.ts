// What a cache rule says: of a request before its origin answers, and of the answer.
//
// The rule without `match.media_type` that a request meets first decides what has to be known before the origin answers (TypedRule's
// `settings` cannot say any of it). A rule with `match.media_type` that stands before it takes its place for answers of that type. Whoever
// has the head of an answer, from the origin or from the cache, therefore asks `forAnswer`.

import {
  editedNames,
  editsInTurn,
  editsOfNotModified,
  requestEditsName,
  type HeaderEdits,
} from "../http/header-edits.ts";
import { lifetimeUnder } from "../http/http-cache.ts";
import type { Field } from "../http/http-fields.ts";
import { ruleVaryNames } from "../http/http-vary.ts";
import { compileCookieRule, type CookieJudge } from "../http/request-cookies.ts";
import type { CacheSettings } from "./effective-devlove.ts";
import type { MediaTypes } from "./media-types.ts";
import { compileQueryRule, textOfRule } from "./query-rule.ts";

type StoredResponse = Parameters<typeof lifetimeUnder>[0];

/** The rule that an answer has. */
export type AnswerRule = {
  readonly settings: CacheSettings;
  /** The media types by which the answer has this rule; undefined if the request alone decided. */
  readonly mediaTypes: readonly string[] | undefined;
  /** Returns what is said of the headers of an answer with this status: by the rule, and then by the site. */
  readonly answerEdits: (status: number) => HeaderEdits;
  /** Gives a stored response the lifetime it has under this rule, whatever rule it was stored under. */
  readonly inForce: <S extends StoredResponse>(stored: S) => S;
};

/** The rule that a request has. */
export type CacheRoute = {
  /** What these say of an answer holds only where `forAnswer` returns them. */
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
  /** A name for what the rule says of the headers of requests, "" if it says nothing. */
  readonly requestEdits: string;
  /** The request headers of which the origin is told the same for all visitors, in lower case: nothing varies by them. */
  readonly toldAlike: ReadonlySet<string>;
  /**
   * What the fields of the request have decided in the choice of this rule, and what a parameter has that the
   * rule itself may leave out; "" if neither had a part in it and the rule is that of all requests for the
   * name in the cache. A stored response answers only where the same was decided.
   */
  readonly choice: string;
  /** Returns the rule for an answer with this head, as the origin said it. The same list gives the same rule. */
  readonly forAnswer: (fields: readonly Field[]) => AnswerRule;
  /** What the rules that the answer may have say of its headers, all together: for what is passed on before the answer. */
  readonly earlyEdits: HeaderEdits;
  /** The rules that an answer may have instead by its media type, in the order in which they are asked. */
  readonly typed: readonly TypedRule[];
};

/** A rule with `match.media_type`. */
export type TypedRule = { readonly settings: CacheSettings; readonly types: MediaTypes };

export function cacheRoute(settings: CacheSettings, ofSite: HeaderEdits): CacheRoute {
  const { query, headers } = settings;
  const own = answerRule(settings, ofSite);
  return {
    settings,
    normalizeQuery: compileQueryRule(query),
    queryRule: textOfRule(query),
    cookies: compileCookieRule(settings.cookies),
    varyNames: ruleVaryNames(settings),
    requestEdits: requestEditsName(headers.request),
    toldAlike: editedNames(headers.request),
    choice: "",
    forAnswer: () => own,
    earlyEdits: own.answerEdits(200),
    typed: [],
  };
}

/** Returns the route of requests that have `route` unless the type of the answer gives it one of `typed`, asked in turn. */
export function byAnswer(
  route: CacheRoute,
  typed: readonly TypedRule[],
  ofSite: HeaderEdits,
): CacheRoute {
  const rules = typed.map(({ settings, types }) => ({
    types,
    rule: answerRule(inPlaceOf(route.settings, settings), ofSite, types.names),
  }));
  // A hit asks with the head of its entry each time.
  const known = new WeakMap<readonly Field[], AnswerRule>();
  return {
    ...route,
    // An object of its own: requests whose answers may have other rules share no fetch.
    settings: { ...route.settings },
    forAnswer: (fields) => {
      const before = known.get(fields);
      if (before !== undefined) return before;
      const found = rules.find(({ types }) => types.holds(fields))?.rule ?? route.forAnswer(fields);
      known.set(fields, found);
      return found;
    },
    earlyEdits: typed.reduce(
      (edits, { settings }) => editsInTurn(settings.headers.response, edits),
      route.earlyEdits,
    ),
    typed,
  };
}

/** Returns the settings of an answer: what decides before the origin answers is as the request's rule says it. */
function inPlaceOf(
  { bypass, query, cookies, vary, headers: { request } }: CacheSettings,
  typed: CacheSettings,
): CacheSettings {
  const { response } = typed.headers;
  return { ...typed, bypass, query, cookies, vary, headers: { response, request } };
}

function answerRule(
  settings: CacheSettings,
  ofSite: HeaderEdits,
  mediaTypes?: readonly string[],
): AnswerRule {
  const { response } = settings.headers;
  const ofAnswers = editsInTurn(response, ofSite);
  const ofNotModified = editsInTurn(editsOfNotModified(response), ofSite);
  // What is made is remembered: a hit asks for it each time, and reading what the origin said takes a
  // microsecond.
  const known = new WeakMap<StoredResponse, StoredResponse>();
  const underRule = <S extends StoredResponse>(stored: S): S => {
    const freshForS = lifetimeUnder(stored, settings);
    return freshForS === stored.freshForS ? stored : { ...stored, freshForS };
  };
  return {
    settings,
    mediaTypes,
    answerEdits: (status) => (status === 304 ? ofNotModified : ofAnswers),
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
