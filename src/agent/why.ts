// `accel-agent why URL`: how a plain GET, or one with cookies, would be answered now, and what the cache
// knows of the URL.

import { AccelError } from "../core/faults.ts";
import { requestDirectives } from "../core/http/cache-control.ts";
import type { Scheme } from "../core/http/client-address.ts";
import type { HeaderEdits } from "../core/http/header-edits.ts";
import { fieldValue, type Field } from "../core/http/http-fields.ts";
import type { PassReason } from "../core/http/http-pass.ts";
import { staleSince } from "../core/http/http-age.ts";
import { selectStored } from "../core/http/http-reuse.ts";
import {
  requestEditsKey,
  ruleChoiceName,
  selectingOf,
  toldCookiesName,
  type Selecting,
} from "../core/http/http-vary.ts";
import { toldToShare, type CookieUse } from "../core/http/request-cookies.ts";
import { decodePath, httpsUrl, sentPath } from "../core/http/request-path.ts";
import { passedOn } from "../core/serving/record-words.ts";
import { nextStep, type RequestAnswer } from "../core/serving/request-plan.ts";
import type { ServingState } from "../core/serving/serving-state.ts";
import type { CacheRoute } from "../core/serving/cache-route.ts";
import { queryRuleName } from "../core/serving/site-routes.ts";
import { BlobBodies } from "./accelerator/files/bodies.ts";
import { HostTable, type ServedSite } from "./accelerator/pool/host-table.ts";
import { foresee, SiteFacts } from "./accelerator/site-facts.ts";
import type { UrlArgument } from "./admin/url-argument.ts";
import type { EntryKey } from "./cache/entry.ts";
import type { Doubt, IndexClient } from "./cache/index/index-client.ts";
import { cachedTold, type StoredEntry } from "./why-cached.ts";

export type WhyParts = {
  readonly index: Pick<IndexClient, "why" | "doubt">;
  /**
   * The time by which all domains that are to be dropped have been dropped, ISO 8601; null if none is to be.
   */
  readonly dropsUntil: string | null;
  readonly state: ServingState;
  readonly blobsDir: string;
  readonly nowMs: number;
};

/** What the cache knows of the URL. */
type Known = {
  readonly entries: readonly StoredEntry[];
  readonly doubt: Doubt | undefined;
  readonly dropsUntil: string | null;
  readonly nowMs: number;
};

type Met = {
  /** Where the answer would come from. */
  readonly serves: "static" | "generated" | "redirect" | "nothing";
  readonly cache: string;
  readonly text: string;
};

/**
 * Explains a URL. `cookie` is the value of a Cookie field; the answer does not repeat it. Throws NOT_FOUND
 * for a host that is not served here, and what the index throws.
 */
export async function why(
  { index, state, blobsDir, nowMs, dropsUntil }: WhyParts,
  url: UrlArgument,
  cookie: string | null = null,
): Promise<unknown> {
  await using bodies = new BlobBodies({ blobsDir, memoryMax: 0 });
  const table = new HostTable(state, { defaultDomain: null, bodies, nowMs: () => nowMs });
  await using request = requestFor(url, cookie, nowMs);
  const step = await foresee(request, table, url.host);
  if (request.host?.kind !== "served")
    throw new AccelError(
      "NOT_FOUND",
      `this agent serves no host ${JSON.stringify(url.host)}${url.host.includes(".") ? "" : "; a decision has 16 hexadecimal digits, a host has a dot"}`,
    );
  const { domain, compiled } = request.host;
  const { asked } = request;
  const { pictureWidth } = asked;
  const rule = compiled?.routes.cache(asked, request.request);
  const answer = await index.why(keysOf(domain, url.host, request, rule));
  const entries = answer.keys.flatMap((one) => one.entries);
  const known: Known = { entries, doubt: index.doubt(domain), dropsUntil, nowMs };
  const use = rule?.cookies(request.request.fields) ?? noCookies;
  return {
    url: `${url.scheme ?? "http"}://${url.host}${sentPath(url)}`,
    domain,
    host: url.host,
    a_plain_get: {
      ...meets(step, request, url, use, known),
      ...(cookie !== null && { cookies: cookieWord(use) }),
    },
    ...(pictureWidth !== undefined && { picture_width: pictureWidth }),
    ...(compiled !== undefined && limitsWord(compiled, url)),
    ...(rule !== undefined && headersWord(rule.settings)),
    ...(rule !== undefined &&
      rule.typed.length > 0 && { rules_by_media_type: rule.typed.map(typedWord) }),
    ...cachedTold(answer, known, rule, compiled?.site),
  };
}

/** Lists the rules of `limits` that the path meets, whatever the method is. */
function limitsWord({ limits }: ServedSite, { rawPath }: UrlArgument) {
  const requests = limits.requests(rawPath).map(({ text, isEnforced }) => ({
    rule: text,
    mode: isEnforced ? "enforce" : "monitor",
  }));
  const pace = limits.bytes(rawPath);
  return {
    ...(requests.length > 0 && { limits: requests }),
    ...(pace !== undefined && {
      bytes: { rate_bytes_s: pace.rateBytesS, after_bytes: pace.afterBytes },
    }),
  };
}

/** Lists the headers that the rule sets or removes, by name only: a value may be a secret of the origin. */
function headersWord({ headers }: CacheRoute["settings"]) {
  const namesOf = ({ set, remove }: HeaderEdits) =>
    [Object.keys(set).map((name) => `+${name}`), remove.map((name) => `-${name}`)].flat();
  const response = namesOf(headers.response);
  const request = namesOf(headers.request);
  return response.length + request.length > 0 ? { rule_headers: { response, request } } : {};
}

/** Names a rule that an answer has in place of the others if it has one of the media types. */
function typedWord({ types, settings }: CacheRoute["typed"][number]) {
  return { media_type: types.names, ...headersWord(settings) };
}

/**
 * Makes a GET with no fields but Host and Cookie. Without a stated scheme it is https, which
 * `tls.redirect_http` leaves alone.
 */
function requestFor(url: UrlArgument, cookie: string | null, nowMs: number): SiteFacts {
  const fields: Field[] = [["Host", url.host]];
  if (cookie !== null) fields.push(["Cookie", cookie]);
  const head = { method: "GET", url: sentPath(url), httpVersion: "1.1", fields, hasBody: false };
  return new SiteFacts(head, { ...url, authority: undefined }, url.scheme ?? "https", nowMs);
}

const noCookies: CookieUse = { kind: "none" };

/** Describes the use of cookies by name only, for values are private. */
function cookieWord(use: CookieUse): string {
  switch (use.kind) {
    case "none":
    case "ignored":
      return use.kind;
    case "vary":
      return `vary by ${toldNames(use.told)}`;
    case "own":
    case "bypass":
      return use.name ?? "one that cannot be read";
    default:
      return use satisfies never;
  }
}

function toldNames(told: string): string {
  return told
    .split("; ")
    .map((pair) => pair.split("=", 1)[0])
    .join(", ");
}

function meets(
  step: Awaited<ReturnType<typeof foresee>>,
  request: SiteFacts,
  url: UrlArgument,
  use: CookieUse,
  known: Known,
): Met {
  if (step === "stored") return meetsCache(request, url, use, known);
  switch (step.kind) {
    case "file":
      return meetsFile("the file", request, known);
    case "single-page":
      return meetsFile(`${noFile}: the single page`, request, known);
    case "not-found-page":
      return met("nothing", `${noFile}: 404 with the page ${request.site.site.not_found}`);
    case "redirect": {
      const by = step.by === "rule" ? "by a rule of the devlove" : "a directory with an index";
      return met("redirect", `${step.status} to ${step.to}, ${by}`);
    }
    case "challenge":
      return met("nothing", "an open challenge of the order of the host's certificate: tls.acme");
    case "redirect-to-https":
      return met("redirect", `308 to ${httpsUrl(url.host, url)}: tls.redirect_http of the devlove`);
    case "pass":
      return met("generated", passText(step.reason, use, request.rule));
    case "refused":
      return met("nothing", `${refusalTexts.get(step.because) ?? step.text}: ${step.status}`);
    default:
      throw new TypeError(`a plain GET of a visitor who is let in is not answered by ${step.kind}`);
  }
}

function met(serves: Met["serves"], text: string, cache = "not asked"): Met {
  return { serves, cache, text };
}

const noFile = "no file and no backend";
const refusalTexts: ReadonlyMap<string, string> = new Map([
  ["no-devlove", "no devlove is active for the domain"],
  ["nothing-there", noFile],
]);

function meetsFile(what: string, request: SiteFacts, { entries }: Known): Met {
  const file = request.foundFile;
  const isKnown = entries.some(
    ({ path, form, digest, servable }) =>
      digest === file?.digest && path === file?.path && form === null && servable,
  );
  const text = `${what} ${file?.path}, ${file?.size} bytes`;
  return met("static", text, isKnown ? "hit" : "miss");
}

/**
 * Tells what the cache would do. An entry that fits this request exactly comes before one that would fit a
 * similar request, since nothing is known of a visitor's request but its cookies.
 */
function meetsCache(request: SiteFacts, url: UrlArgument, use: CookieUse, known: Known): Met {
  const { doubt, dropsUntil } = known;
  const told = toldToShare(use);
  const said = selectingOf(told === undefined ? request.request.fields : [["Cookie", told]]);
  const asked = reusesOf(request, url, use, known, () => said);
  const like = reusesOf(
    request,
    url,
    use,
    known,
    ({ vary }) =>
      (name) =>
        vary?.[name] ?? "",
  );
  const reused = asked.length > 0 ? asked : like;
  if (reused.length === 0) return met("generated", askedText(use), "miss");
  const lasts = reused.includes("serve") ? "hit" : "stale";
  const word = doubt === undefined ? lasts : "unconfirmed, the origin is asked";
  return met(
    "generated",
    doubt === undefined ? askedText(use) : `${askedText(use)}; ${doubtText(doubt, dropsUntil)}`,
    asked.length > 0 ? word : `${word}, for requests like the variant`,
  );
}

/** Returns how each usable entry would be used if it were the only one. */
function reusesOf(
  request: SiteFacts,
  { scheme }: UrlArgument,
  use: CookieUse,
  { entries, doubt, nowMs }: Known,
  selectingFor: (entry: StoredEntry) => Selecting,
): readonly RequestAnswer["kind"][] {
  const { rule } = request;
  if (rule === undefined) return [];
  const { queryRule } = rule;
  const told = toldToShare(use);
  const cookies = told ?? fieldValue(request.request.fields, "cookie") ?? "";
  const context = { confirmed: doubt === undefined, nowMs };
  return entries.flatMap((entry) => {
    const fromFields = selectingFor(entry);
    const selecting = (name: string): string => {
      if (name === queryRuleName) return queryRule;
      if (name === ruleChoiceName) return rule.choice;
      if (name === requestEditsKey) return rule.requestEdits;
      if (rule.toldAlike.has(name)) return "";
      if (name === toldCookiesName) return cookies;
      return name === "x-forwarded-proto" ? schemeOf(entry, scheme) : fromFields(name);
    };
    const hasOwnCookies = told === undefined;
    const selector = { selecting, isAuthorized: false, hasOwnCookies, passesOver: false };
    const selection = selectStored([entry], ({ servable }) => servable, selector, rule);
    const { base: found } = selection;
    if (found === undefined || entry.kind === "static") return [];
    const { softenedS } = entry;
    const base = softenedS === null ? found : staleSince(found, softenedS * 1_000, nowMs);
    const asks = requestDirectives(request.request.fields);
    const { settings } = rule.forAnswer(entry.headers);
    request.stored = { ...selection, base, ...context, settings, request: asks };
    const step = nextStep(request);
    return typeof step === "string" ? [] : [step.kind];
  });
}

/** Returns the scheme, with the port of the entry if that is not the scheme's own. */
function schemeOf({ vary }: StoredEntry, scheme: Scheme | undefined): string {
  const stored = vary?.["x-forwarded-proto"] ?? "";
  return scheme === undefined || stored.split(":")[0] === scheme ? stored : scheme;
}

function askedText(use: CookieUse): string {
  const text = "from the backend where it is not cached";
  switch (use.kind) {
    case "none":
      return text;
    case "ignored":
      return `${text}, without cookies, because all of them are ignored`;
    case "vary":
      return `${text}, with these cookies and no others: ${toldNames(use.told)}`;
    case "own":
    case "bypass":
      return `${text}; the cookies are sent to the backend, and its answer is stored only if it says itself that it is for everybody`;
    default:
      return use satisfies never;
  }
}

function passText(reason: PassReason, use: CookieUse, rule: CacheRoute | undefined): string {
  switch (reason) {
    case "paused":
      return `${passedOn}: the devlove pauses the cache (cache.paused_until)`;
    case "bypass":
      return "a rule of the devlove bypasses the cache";
    case "bypass_cookie":
      return `${passedOn}: cookies.bypass of the rule names ${ownCookie(use)}`;
    case "cookie":
      return rule?.settings.cookies.vary.length === 0
        ? `${passedOn}: the rule has a ttl_s, and ${ownCookie(use)} is not ignored`
        : `${passedOn}: the rule has cookies.vary, and ${ownCookie(use)} is not ignored, or has no value that all servers read alike`;
    case "request":
    case "method":
      return `${passedOn}: \`?\` stands alone at the end`;
    default:
      return reason satisfies never;
  }
}

function ownCookie(use: CookieUse): string {
  return "name" in use && use.name !== undefined
    ? `the cookie ${JSON.stringify(use.name)}`
    : "a cookie whose name cannot be read";
}

/**
 * Returns the keys that are looked up now, and those that the URL may have had before, such as a file that is
 * gone, or a page where there is a file now.
 */
function keysOf(
  domain: string,
  host: string,
  request: SiteFacts,
  rule: CacheRoute | undefined,
): readonly EntryKey[] {
  const { rawPath, rawQuery } = request.asked;
  const query = rule?.normalizeQuery(rawQuery) ?? rawQuery;
  const files = [request.foundFile?.path, decodePath(rawPath)].map((path): EntryKey | undefined =>
    path === undefined ? undefined : { domain, host, kind: "static", path, query: "" },
  );
  const page: EntryKey = { domain, host, kind: "generated", path: rawPath, query };
  const candidates = [files[0], page, files[1]].filter((one) => one !== undefined);
  return [...new Map(candidates.map((one) => [JSON.stringify(one), one])).values()];
}

function doubtText(doubt: Doubt, dropsUntil: string | null): string {
  switch (doubt) {
    case "to be dropped": {
      const when = dropsUntil === null ? "soon" : `by ${dropsUntil}`;
      return `what is cached is sent only after the origin has confirmed it: central was restored, and the domain's cache is dropped ${when}`;
    }
    case "clears unconfirmed":
      return "what is cached is sent only after the origin has confirmed it: since the agent's start, central has not said that no clear was missed";
    default:
      return doubt satisfies never;
  }
}
