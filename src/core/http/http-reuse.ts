// Whether a stored response answers a request: RFC 9111 §4, §5.2.1, RFC 5861. Decided from facts; nothing is looked up or asked here.

import type { RequestDirectives } from "./cache-control.ts";
import type { CacheSettings } from "../serving/effective-devlove.ts";
import type { AnswerRule, CacheRoute } from "../serving/cache-route.ts";
import { currentAgeS, type Stored } from "./http-age.ts";
import {
  conditionsFor,
  lifetimeByOrigin,
  mayServeAuthorized,
  mayServeCookies,
  staleRules,
} from "./http-cache.ts";
import type { Field } from "./http-fields.ts";
import { variesByRule } from "./request-cookies.ts";
import {
  isVariantFor,
  requestEditsKey,
  ruleChoiceName,
  toldCookiesName,
  type Selecting,
} from "./http-vary.ts";

export type Candidate = Stored & { readonly status: number; readonly headers: readonly Field[] };

/** Why nothing is selected, in the words of RFC 9211 §2.2: nothing is there; nothing for these fields; or what is there is not for these credentials. */
export type Missing = "uri-miss" | "vary-miss" | "request";

export type Selection<S> = {
  /**
   * The stored response that the answer may be built on, with the lifetime it has under the rule in force.
   */
  readonly base: S | undefined;
  /** Meaningless where `base` is there. */
  readonly missing: Missing;
};

export type Selector = {
  readonly selecting: Selecting;
  readonly isAuthorized: boolean;
  /** The request has cookies that are its visitor's own. */
  readonly hasOwnCookies: boolean;
  /** Whether the request passes over everything that is stored. */
  readonly passesOver: boolean;
};

type SelectingRule = Pick<
  CacheRoute,
  "forAnswer" | "settings" | "choice" | "varyNames" | "requestEdits"
>;

/**
 * Selects among the responses stored under a URL, newest first. The newest that may be used and fits the
 * request decides (RFC 9111 §4.1).
 */
export function selectStored<
  S extends Candidate & {
    readonly vary: Readonly<Record<string, string>> | null;
    readonly form: string | null;
  },
>(
  entries: readonly S[],
  isServable: (entry: S) => boolean,
  selector: Selector,
  { forAnswer, settings, choice, varyNames, requestEdits }: SelectingRule,
): Selection<S> {
  const { selecting, isAuthorized } = selector;
  // What was stored under a rule that varied by no cookies may depend on those that this rule varies by.
  const varies = variesByRule(settings.cookies);
  // The same goes for fields by which rules are chosen now.
  const isOfRule = ({ vary }: S): boolean =>
    (!varies || vary?.[toldCookiesName] !== undefined) &&
    (choice === "" || vary?.[ruleChoiceName] !== undefined) &&
    // And for what the origin is told alike of all now.
    (requestEdits === "" || vary?.[requestEditsKey] !== undefined) &&
    varyNames.every((name) => vary?.[name] !== undefined);
  const found = selector.passesOver
    ? undefined
    : entries.find(
        (entry) =>
          entry.form === null &&
          isVariantFor(entry.vary, selecting) &&
          isOfRule(entry) &&
          isServable(entry) &&
          (!isAuthorized || mayServeAuthorized(entry.headers)),
      );
  const rule = found && forAnswer(found.headers);
  const base = found && rule?.inForce(found);
  if (base !== undefined && rule !== undefined && mayAnswer(base, selector, rule.settings))
    return { base, missing: "uri-miss" };
  if (!entries.some(isServable)) return { base: undefined, missing: "uri-miss" };
  const isForOthers = isAuthorized || base !== undefined;
  return { base: undefined, missing: isForOthers ? "request" : "vary-miss" };
}

/**
 * Returns whether the response may answer this request. With cookies it needs the origin's word that it is
 * for all: a lifetime, or that it says so. Where the rule of the request has `ttl_s`, none comes here (see http-pass.ts); where
 * only that of the answer has it, what is stored answers none. A lifetime by `negative_ttl_s` is not the origin's word.
 */
export function mayAnswer(
  stored: Candidate,
  selector: Pick<Selector, "hasOwnCookies">,
  { ttl_s: ttlS, negative_ttl_s: negativeS }: AnswerRule["settings"],
): boolean {
  if (!selector.hasOwnCookies) return true;
  if (ttlS !== null) return false;
  const lifetimeS = negativeS === null ? stored.freshForS : lifetimeByOrigin(stored);
  return lifetimeS > 0 || mayServeCookies(stored.headers);
}

export type Reuse =
  | { readonly kind: "serve" }
  /** `refreshes` says whether it is fetched again in the background (stale-while-revalidate). */
  | { readonly kind: "serve-stale"; readonly refreshes: boolean }
  | {
      readonly kind: "fetch";
      /** The `fwd` parameter of RFC 9211 §2.2. */
      readonly fwd: "uri-miss" | "vary-miss" | "stale" | "request";
      /** The fields that ask whether the stored response still holds; empty to ask for the whole. */
      readonly conditions: readonly Field[];
      /** Whether the stored response may be sent if the origin fails. */
      readonly standsIn: boolean;
    }
  /** The request says only-if-cached, and nothing stored suits it. */
  | { readonly kind: "refuse" };

export type ReuseContext = {
  readonly request: RequestDirectives;
  readonly settings: Pick<CacheSettings, "stale_while_revalidate_s" | "stale_if_error_s">;
  readonly missing: Missing;
  /**
   * False if clears may be on their way that are not known here; the origin then has to confirm what is
   * stored.
   */
  readonly confirmed: boolean;
  readonly nowMs: number;
};

const serve: Reuse = { kind: "serve" };
const refuse: Reuse = { kind: "refuse" };

export function decideReuse(stored: Candidate | undefined, context: ReuseContext): Reuse {
  const { request, confirmed } = context;
  if (stored === undefined)
    return request.onlyIfCached
      ? refuse
      : {
          kind: "fetch",
          fwd: context.missing,
          conditions: [],
          standsIn: false,
        };
  const ageS = currentAgeS(stored, context.nowMs);
  const staleForS = ageS - stored.freshForS;
  const isStale = staleForS >= 0;
  const suits =
    !request.noCache &&
    ageS <= (request.maxAgeS ?? Infinity) &&
    (request.minFreshS === undefined || -staleForS >= request.minFreshS);
  if (confirmed && suits && !isStale) return serve;
  const { isForbidden, whileRevalidateS, ifErrorS } = staleRules(stored.headers, context.settings);
  const mayBeStale = confirmed && !isForbidden && Number.isFinite(ageS);
  if (mayBeStale && suits) {
    if (staleForS < whileRevalidateS)
      return { kind: "serve-stale", refreshes: !request.onlyIfCached };
    if (staleForS < request.maxStaleS) return { kind: "serve-stale", refreshes: false };
  }
  if (request.onlyIfCached) return refuse;
  return {
    kind: "fetch",
    fwd: isStale || !confirmed ? "stale" : "request",
    conditions: conditionsFor(stored.status, stored.headers),
    // A fresh response was only not what the visitor asked for, so nothing that the origin says of stale ones
    // keeps it back.
    standsIn:
      (isStale ? mayBeStale : confirmed) &&
      !request.noCache &&
      stored.status < 500 &&
      staleForS < Math.max(ifErrorS, request.staleIfErrorS),
  };
}

/** Returns whether a status counts as an error (RFC 5861 §4). */
export function isOriginError(status: number): boolean {
  return status === 500 || status === 502 || status === 503 || status === 504;
}
