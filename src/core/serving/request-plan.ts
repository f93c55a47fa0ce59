// Decides what a request gets, in order. Each pure step leads from the facts known so far to the fact that is
// wanted next, or to the answer. Whoever answers requests, or says how they would be answered, finds the
// facts in its own way and follows this order: the pipeline, `accel-agent why`, the probes of a version.
//
//   head, target      refused where two readers could understand them differently
//   purge             a purge request that nobody took before
//   host              nobody is served under this name
//   challenge         a directory of ACME asks whether the host is its customer's
//   verdict           blocked
//   limit             too many requests, by limits.requests; https only comes before it
//   the site's word   no devlove, https only, the size of the body, redirects, upgrades
//   file              a file, or a directory with an index
//   rule              origins only: what the cache has no part in is passed on
//   stored            whether what is stored answers, and what is asked of the origin where it does not
//   pages             without an origin: the single page, the page for what is not there

import { challengeAnswer, type OpenChallenges } from "../acme/open-challenges.ts";
import { requestDirectives } from "../http/cache-control.ts";
import type { Scheme } from "../http/client-address.ts";
import { fieldValue, type Field } from "../http/http-fields.ts";
import { passReason, type PassReason } from "../http/http-pass.ts";
import { decideReuse, type Candidate, type Reuse, type ReuseContext } from "../http/http-reuse.ts";
import { askedQuery, type RequestTarget } from "../http/request-path.ts";
import { isExempt, type LimitFact } from "../limits/limit-verdict.ts";
import { purgeMethods } from "../purge/purge-dialects.ts";
import type { SiteConfig } from "./effective-devlove.ts";
import { asksForUpgrade, headFault, type RequestHead } from "./request-check.ts";
import type { CacheRoute } from "./cache-route.ts";
import type { SiteRoutes } from "./site-routes.ts";
import type { Verdict } from "./verdict.ts";

export type PlannedSite = { readonly site: SiteConfig; readonly routes: SiteRoutes };

export type HostFact =
  /** No state has been published yet. */
  | { readonly kind: "starting" }
  | { readonly kind: "malformed" }
  /** `host` is "" if none was named. */
  | { readonly kind: "unknown"; readonly host: string }
  | {
      readonly kind: "served";
      readonly host: { readonly name: string; readonly challenges?: OpenChallenges };
      /** Undefined if no devlove is active. */
      readonly compiled: PlannedSite | undefined;
    };

export type FileFact =
  | { readonly kind: "file" }
  /** The path names a directory with an index; `path` is its canonical form with a slash at the end, encoded. */
  | { readonly kind: "directory"; readonly path: string }
  /** The file was a different one at the end of each reading. */
  | { readonly kind: "changing" }
  | { readonly kind: "none" };

/**
 * The facts known so far; undefined if not known yet. Whoever answers adds what is wanted. A fact that turns
 * out not to hold is taken back, and wanted again.
 */
export type RequestFacts = {
  readonly request: RequestHead;
  /** Undefined if the target is neither a path nor an http URL. */
  readonly target: RequestTarget | undefined;
  /** The scheme of the visitor's request. */
  readonly scheme: Scheme;
  /** When the request arrived, by the wall clock. */
  readonly startedWallMs: number;
  readonly host: HostFact | undefined;
  readonly verdict: Pick<Verdict, "kind" | "set"> | undefined;
  readonly limit: LimitFact | undefined;
  readonly file: FileFact | undefined;
  readonly singlePage: FileFact | undefined;
  readonly notFoundPage: FileFact | undefined;
  readonly rule: CacheRoute | undefined;
  readonly stored: StoredFact | undefined;
};

export const nothingKnown: Omit<RequestFacts, "request" | "target" | "scheme" | "startedWallMs"> = {
  host: undefined,
  verdict: undefined,
  limit: undefined,
  file: undefined,
  singlePage: undefined,
  notFoundPage: undefined,
  rule: undefined,
  stored: undefined,
};

/** One look at the cache. */
export type StoredFact = ReuseContext & {
  /** The stored response that was selected for the request. */
  readonly base: Candidate | undefined;
};

export type Wanted =
  | "host"
  | "verdict"
  | "limit"
  | "file"
  | "single-page"
  | "not-found-page"
  | "rule"
  | "stored";

export type Refused = {
  readonly kind: "refused";
  readonly because:
    | "request"
    | "starting"
    | "host"
    | "no-devlove"
    | "body"
    | "changing"
    | "method"
    | "nothing-there";
  readonly status: number;
  readonly text: string;
  readonly fields: readonly Field[];
};

export type RequestAnswer =
  | Refused
  /** What is proved by it is the host's, whoever asks: no verdict, limit or redirect comes before it. */
  | { readonly kind: "challenge"; readonly keyAuthorization: string }
  | { readonly kind: "blocked" }
  /** Too many requests of this address; after so many whole seconds it may ask again. */
  | { readonly kind: "limited"; readonly waitS: number }
  | { readonly kind: "redirect-to-https" }
  | {
      readonly kind: "redirect";
      readonly by: "rule" | "directory";
      readonly status: number;
      readonly to: string;
    }
  /** The methods that the site, or its files alone, may be asked with. */
  | { readonly kind: "options"; readonly allow: string; readonly isOfFiles: boolean }
  | { readonly kind: "file" }
  | { readonly kind: "single-page" }
  | { readonly kind: "not-found-page" }
  /** The origin is asked for another protocol on this connection, a WebSocket mostly. */
  | { readonly kind: "upgrade" }
  | { readonly kind: "pass"; readonly reason: PassReason }
  /**
   * The request accepts only what is stored (only-if-cached). `passed` says why the cache has no part in it,
   * if that is so.
   */
  | { readonly kind: "nothing-stored"; readonly passed: PassReason | undefined }
  | Exclude<Reuse, { readonly kind: "refuse" }>;

const methodsOfFiles = "GET, HEAD, OPTIONS";
const methodsOfSites = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE";

/**
 * Returns the next fact wanted, or the answer. Cheap when little is new: what an earlier step decided is not
 * looked at again.
 */
export function nextStep(facts: RequestFacts): Wanted | RequestAnswer {
  const { request, target, host, verdict } = facts;
  if (host === undefined) return onArrival(request, target);
  if (host.kind !== "served") return unserved(host);
  if (verdict === undefined)
    return host.host.challenges === undefined
      ? "verdict"
      : (challenge(facts, host.host.challenges) ?? "verdict");
  if (verdict.kind === "block") return blocked;
  const { compiled } = host;
  if (compiled === undefined) {
    const text = `${host.host.name} is linked, but no configuration (devlove) is active for it.`;
    return refused("no-devlove", 503, text);
  }
  return target === undefined ? oddTarget(request) : onSite(facts, compiled, target);
}

function onArrival(
  request: RequestHead,
  target: RequestTarget | undefined,
): "host" | RequestAnswer {
  const fault = headFault(request);
  if (fault === undefined && purgeMethods.has(request.method)) return notPurged(request);
  if (fault === undefined) return target === undefined ? oddTarget(request) : "host";
  const { status, text } = fault;
  return refused("request", status, text, status === 405 ? [["Allow", methodsOfSites]] : []);
}

/** Where nobody may purge, such a request is refused; it is never passed on. */
function notPurged({ method }: RequestHead): Refused {
  const text = `${method} is not taken here: no devlove lets you purge this host (purge.addresses, purge.keys).`;
  return refused("method", 405, text, [["Allow", methodsOfSites]]);
}

function oddTarget({ method, url }: RequestHead): RequestAnswer {
  if (url === "*" && method === "OPTIONS")
    return { kind: "options", allow: methodsOfSites, isOfFiles: false };
  return refused("request", 400, "The request target is neither a path nor an http URL.");
}

function challenge(
  { request, target, startedWallMs }: RequestFacts,
  challenges: OpenChallenges,
): RequestAnswer | undefined {
  const said = challengeAnswer(challenges, request.method, target, startedWallMs);
  return said === undefined ? undefined : { kind: "challenge", keyAuthorization: said };
}

function unserved(fact: Exclude<HostFact, { kind: "served" }>): Refused {
  if (fact.kind === "starting")
    return refused("starting", 503, "The accelerator is starting.", [["Retry-After", "1"]]);
  if (fact.kind === "malformed") return refused("host", 400, "The Host field names no host.");
  if (fact.host === "") return refused("host", 421, "The request names no host.");
  const host = JSON.stringify(fact.host.slice(0, 253));
  return refused("host", 421, `No site is served here under the name ${host}.`);
}

function onSite(
  facts: RequestFacts,
  { site, routes }: PlannedSite,
  target: RequestTarget,
): Wanted | RequestAnswer {
  const { request, file, rule, stored } = facts;
  const limited = limitedBy(facts, site);
  if (limited !== undefined) return limited;
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (stored !== undefined) return reused(stored);
  if (rule !== undefined) {
    const isPaused = facts.startedWallMs < routes.pausedUntilMs;
    return passedOn(request, target, rule, isPaused) ?? "stored";
  }
  if (file === undefined) {
    const said = saidBySite(facts, site, routes, target);
    return said ?? (isRead || site.backend === null ? "file" : "rule");
  }
  if (file.kind !== "none") return isRead ? found(file, target) : notRead(request);
  if (site.backend !== null) return "rule";
  return isRead ? insteadOfFile(facts, site) : nothingThere;
}

/** Undefined: nothing is against the request. One that is redirected to HTTPS is not counted, for its visitor asks again. */
function limitedBy(
  { verdict, limit, scheme }: RequestFacts,
  { limits, tls }: SiteConfig,
): "limit" | RequestAnswer | undefined {
  if (limits.requests.length === 0 || verdict === undefined || isExempt(verdict)) return undefined;
  if (tls.redirect_http && scheme === "http") return undefined;
  if (limit === undefined) return "limit";
  return limit.kind === "over" ? { kind: "limited", waitS: limit.waitS } : undefined;
}

/** Returns what the site says of a request before anything is looked up for it. */
function saidBySite(
  { request, scheme }: RequestFacts,
  { tls, limits, backend }: SiteConfig,
  { redirect }: SiteRoutes,
  { rawPath }: RequestTarget,
): RequestAnswer | undefined {
  if (tls.redirect_http && scheme === "http") return redirectToHttps;
  if (Number(fieldValue(request.fields, "content-length") ?? 0) > limits.body_bytes_max) {
    const text = `The body of a request to this site may have ${limits.body_bytes_max} bytes at most.`;
    return refused("body", 413, text);
  }
  const said = redirect(rawPath);
  if (said !== undefined) return { kind: "redirect", by: "rule", status: said.status, to: said.to };
  // Without an origin the field is ignored, as RFC 9110 §7.8 allows.
  return backend !== null && asksForUpgrade(request) ? upgrade : undefined;
}

function found(file: Exclude<FileFact, { kind: "none" }>, target: RequestTarget): RequestAnswer {
  switch (file.kind) {
    case "file":
      return theFile;
    case "directory": {
      const query = askedQuery(target);
      const to = `${file.path}${query === "" ? "" : `?${query}`}`;
      return { kind: "redirect", by: "directory", status: 301, to };
    }
    case "changing": {
      const text = "The file is being changed at this moment.";
      return refused("changing", 503, text, [["Retry-After", "1"]]);
    }
    default:
      return file satisfies never;
  }
}

function notRead({ method }: RequestHead): RequestAnswer {
  if (method === "OPTIONS") return { kind: "options", allow: methodsOfFiles, isOfFiles: true };
  const text = `Files can be read with GET and HEAD, not with ${method}.`;
  return refused("method", 405, text, [["Allow", methodsOfFiles]]);
}

/** Decides what is sent if there is neither a file nor a backend. */
function insteadOfFile(
  { singlePage, notFoundPage }: RequestFacts,
  { single_page, not_found }: SiteConfig,
): Wanted | RequestAnswer {
  if (single_page !== null) {
    if (singlePage === undefined) return "single-page";
    if (singlePage.kind === "file") return theSinglePage;
  }
  if (not_found !== null) {
    if (notFoundPage === undefined) return "not-found-page";
    if (notFoundPage.kind === "file") return theNotFoundPage;
  }
  return nothingThere;
}

/** Returns the answer if the cache has no part in the request, or undefined if the cache is asked. */
function passedOn(
  { method, fields, hasBody }: RequestHead,
  { hasLoneMark }: RequestTarget,
  rule: CacheRoute,
  isPaused: boolean,
): RequestAnswer | undefined {
  const reason = passReason({ method, fields, hasBody, hasLoneMark }, rule, isPaused);
  if (reason === undefined) return undefined;
  // RFC 9111 §5.2.1.7. The directive is ignored for methods whose answers are never stored.
  const isRead = method === "GET" || method === "HEAD";
  return isRead && requestDirectives(fields).onlyIfCached
    ? { kind: "nothing-stored", passed: reason }
    : { kind: "pass", reason };
}

function reused(stored: StoredFact): RequestAnswer {
  const reuse = decideReuse(stored.base, stored);
  return reuse.kind === "refuse" ? { kind: "nothing-stored", passed: undefined } : reuse;
}

const blocked: RequestAnswer = { kind: "blocked" };
const upgrade: RequestAnswer = { kind: "upgrade" };
const redirectToHttps: RequestAnswer = { kind: "redirect-to-https" };
const theFile: RequestAnswer = { kind: "file" };
const theSinglePage: RequestAnswer = { kind: "single-page" };
const theNotFoundPage: RequestAnswer = { kind: "not-found-page" };
const nothingThere = refused("nothing-there", 404, "There is nothing at this address.");

function refused(
  because: Refused["because"],
  status: number,
  text: string,
  fields: readonly Field[] = [],
): Refused {
  return { kind: "refused", because, status, text, fields };
}
