// The rules of `limits.requests` and `limits.bytes` of one host, compiled: which of them a request meets.
//
// Paths are as received. A rule is met if any reading of the path meets it (path-readings.ts): another spelling must not
// slip past a limit.

import { readingsOf } from "../http/path-readings.ts";
import type { RequestRule, SiteConfig } from "../serving/effective-devlove.ts";
import { canonicalPath, compilePathPattern, type TextMatcher } from "../serving/path-pattern.ts";
import type { BytePace } from "./byte-pace.ts";
import { burstOf, paceOf, type RatePace, type RateSettings } from "./request-rate.ts";

/** One rule of `limits.requests`. */
export type RequestLimit = {
  /**
   * The main domain and what the rule says but for its mode. Rules with one name count together, also those of other
   * hosts, and of the document before.
   */
  readonly name: string;
  /** For people to read. */
  readonly text: string;
  /** False: what is too much is let through and counted. */
  readonly isEnforced: boolean;
  readonly pace: RatePace;
  readonly takes: (method: string) => boolean;
};

export type SiteLimits = {
  /** All rules of `limits.requests`. */
  readonly all: readonly RequestLimit[];
  /** The rules of `limits.requests` that the path meets, in their order, whatever the method is. */
  readonly requests: (rawPath: string) => readonly RequestLimit[];
  /** What the first rule of `limits.bytes` that the path meets says. */
  readonly bytes: (rawPath: string) => BytePace | undefined;
};

const noLimits: readonly RequestLimit[] = [];

export function compileLimits(site: Pick<SiteConfig, "limits" | "main_domain">): SiteLimits {
  const { requests, bytes } = site.limits;
  const ofRequests = eachOnce(requests.map((rule) => requestLimit(rule, site.main_domain)));
  const paced = bytes.map(({ path, rate_bytes_s: rateBytesS, after_bytes: afterBytes }) => ({
    matcher: compilePathPattern(path),
    pace: { rateBytesS, afterBytes },
  }));
  return {
    all: ofRequests.map(({ limit }) => limit),
    requests: (rawPath) => {
      if (ofRequests.length === 0) return noLimits;
      const meets = meeting(rawPath);
      return ofRequests.flatMap(({ matcher, limit }) => (meets(matcher) ? [limit] : []));
    },
    bytes: (rawPath) => {
      if (paced.length === 0) return undefined;
      const meets = meeting(rawPath);
      return paced.find(({ matcher }) => meets(matcher))?.pace;
    },
  };
}

/** A rule in words, such as `POST /login: 5 in 60 s, 10 at once`. */
export function requestRuleText(rule: RequestRule): string {
  const { path, methods, rate, per_s: perS } = rule;
  const asked = methods.length === 0 ? path : `${methods.join("|")} ${path}`;
  return `${asked}: ${rate} in ${perS} s, ${burstOf(rule)} at once`;
}

/** What a rule counts by. */
export type NamedRule = RateSettings & {
  readonly path: string;
  readonly methods: readonly string[];
};

/** Returns what makes a rule another one: neither its mode nor the order of its methods does. */
export function ruleName(rule: NamedRule): string {
  const { path, methods, rate, per_s: perS } = rule;
  return JSON.stringify([path, methods.toSorted(), rate, perS, burstOf(rule)]);
}

type Compiled = { readonly matcher: TextMatcher; readonly limit: RequestLimit };

function requestLimit(rule: RequestRule, domain: string): Compiled {
  const { path, methods, mode } = rule;
  const asked: ReadonlySet<string> = new Set(
    methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])),
  );
  const limit = {
    name: `${domain} ${ruleName(rule)}`,
    text: requestRuleText(rule),
    isEnforced: mode === "enforce",
    pace: paceOf(rule),
    takes: (method: string) => asked.size === 0 || asked.has(method),
  };
  return { matcher: compilePathPattern(path), limit };
}

/**
 * Leaves out what would take twice from one count. The validator refuses it, but a document that was accepted by a newer
 * release is taken without what this one does not know, and rules may say the same then.
 */
function eachOnce(limits: readonly Compiled[]): readonly Compiled[] {
  const byName = new Map<string, Compiled>();
  for (const one of limits) if (!byName.has(one.limit.name)) byName.set(one.limit.name, one);
  return [...byName.values()];
}

function meeting(rawPath: string): (matcher: TextMatcher) => boolean {
  const paths = [canonicalPath(rawPath), ...readingsOf(rawPath).others];
  return ({ matches }) => paths.some(matches);
}
