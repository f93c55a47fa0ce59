// `accel-agent why URL`: what a plain GET, or one with cookies, would meet now, what is cached of the URL, and what became of what was cached before.

import { mayServeCookies } from "../core/http/http-cache.ts";
import type { Field } from "../core/http/http-fields.ts";
import { passReason, type PassReason } from "../core/http/http-pass.ts";
import type { CookieUse } from "../core/http/request-cookies.ts";
import { queryRuleName, type CacheRoute, type SiteRoutes } from "../core/serving/site-routes.ts";
import { decodePath } from "../core/http/request-path.ts";
import type { ServingState } from "../core/serving/serving-state.ts";
import { AccelError } from "../core/faults.ts";
import { HostTable, type ServedSite } from "./accelerator/pool/host-table.ts";
import { routeStatic, type SiteFile } from "./accelerator/files/site-files.ts";
import type { UrlArgument } from "./admin/url-argument.ts";
import type { ClearSeen } from "./cache/clearing/clear-sql.ts";
import type { EntryKey } from "./cache/entry.ts";
import type { Doubt, IndexClient } from "./cache/index/index-client.ts";
import type { WhyKey } from "./cache/index/why.ts";

/** Of each kind; the newest. */
const clearsShown = 5;

export type WhyParts = {
  readonly index: Pick<IndexClient, "why" | "doubt">;
  /** When the domains that are to be dropped have been, ISO 8601; null where none is. */
  readonly dropsUntil: string | null;
  readonly state: ServingState;
  readonly blobsDir: string;
  readonly nowMs: number;
};

/** A request as it is asked about: a GET without anything but the cookies. */
type Asked = { readonly url: UrlArgument; readonly fields: readonly Field[] };

type Met = {
  /** What the answer would come from, in a word. */
  readonly serves: "static" | "generated" | "redirect" | "nothing";
  readonly text: string;
  /** What is looked up for it; undefined where nothing is. */
  readonly key: EntryKey | undefined;
  /** The cache is asked for it. */
  readonly isCacheable: boolean;
};

/** `cookie`: a Cookie field's value, which is not told again. Throws NOT_FOUND for a host that is not served here, and what the index throws. */
export async function why(
  parts: WhyParts,
  url: UrlArgument,
  cookie: string | null = null,
): Promise<unknown> {
  const fields: readonly Field[] = cookie === null ? [] : [["Cookie", cookie]];
  const { state, blobsDir, nowMs, index } = parts;
  const table = new HostTable(state, { defaultDomain: null, blobsDir, nowMs: () => nowMs });
  const routed = table.route(url.host);
  if (routed.kind !== "served")
    throw new AccelError("NOT_FOUND", `this agent serves no host ${JSON.stringify(url.host)}`);
  const { domain, compiled } = routed;
  const met = compiled === undefined ? noDevlove : await meets(compiled, { url, fields });
  const keys = keysOf(domain, url, met, compiled);
  const { keys: known, clearNo, anew } = await index.why(keys);
  const route = compiled?.routes.cache(url.rawPath);
  const doubt = index.doubt(domain);
  const entries = known.flatMap((one) =>
    one.entries.map((entry) => told(entry, route, nowMs, doubt)),
  );
  const use = route?.cookies(fields) ?? noCookies;
  const usable = entries.filter(
    ({ servable, coding, of_another_rule: isOther, kind, for_cookies: isForCookies }) =>
      servable &&
      coding === null &&
      !isOther &&
      (kind === "static" || use.kind !== "own" || isForCookies),
  );
  return {
    url: `http://${url.host}${url.rawPath}${url.rawQuery === "" ? "" : `?${url.rawQuery}`}`,
    domain,
    host: url.host,
    a_plain_get: {
      serves: met.serves,
      cache: met.isCacheable ? cacheWord(usable) : "not asked",
      text: usable.some(({ confirmed }) => !confirmed)
        ? `${met.text}; ${doubtText(doubt, parts.dropsUntil)}`
        : met.text,
      ...(cookie !== null && { cookies: cookieWord(use) }),
    },
    cached: entries,
    departed: known
      .flatMap((one) => one.departures.map((departure) => ({ kind: one.key.kind, ...departure })))
      .map(({ kind, reason, clearNo: no, clear, mime, atS }) => ({
        at: iso(atS),
        kind,
        mime,
        reason: departureText(reason, clear),
        ...(no !== null && { clear_no: no }),
        ...(clear !== null && { clear: clearFacts(clear) }),
      }))
      .toSorted((a, b) => (a.at < b.at ? 1 : -1)),
    clears: clearsTold(known),
    newest_clear_no: clearNo,
    known_since: anew === null ? null : { at: iso(anew.atS), because: anew.reason },
  };
}

const noCookies: CookieUse = { kind: "none" };

/** Names only: values are somebody's. */
function cookieWord(use: CookieUse): string {
  if (use.kind !== "own") return use.kind;
  return use.name === undefined ? "one that cannot be read" : use.name;
}

const noDevlove: Met = {
  serves: "nothing",
  text: "no devlove is active for the domain: 503",
  key: undefined,
  isCacheable: false,
};

async function meets(served: ServedSite, { url, fields }: Asked): Promise<Met> {
  const { rawPath, rawQuery, hasLoneMark } = url;
  const { site, routes, files } = served;
  const none = { key: undefined, isCacheable: false } as const;
  const redirect = routes.redirect(rawPath);
  if (redirect !== undefined) {
    const text = `${redirect.status} to ${redirect.to}, by a rule of the devlove`;
    return { serves: "redirect", text, ...none };
  }
  const route = await routeStatic(files, rawPath, site.index);
  if (route.kind === "directory")
    return { serves: "redirect", text: `301 to ${route.path}, a directory with an index`, ...none };
  if (route.kind === "file") {
    await using file = route.file;
    return meetsFile(served, file, "the file");
  }
  if (site.backend === null) return meetsAbsent(served);
  const cacheRoute = routes.cache(rawPath);
  const key = keyOf(served, "generated", rawPath, cacheRoute.normalizeQuery(rawQuery));
  const use = cacheRoute.cookies(fields);
  const reason = passReason({ method: "GET", fields, hasBody: false, hasLoneMark }, cacheRoute);
  if (reason === undefined)
    return { serves: "generated", text: askedText(use), key, isCacheable: true };
  return { serves: "generated", text: passText(reason, use), key, isCacheable: false };
}

function askedText(use: CookieUse): string {
  const text = "from the backend where it is not cached";
  switch (use.kind) {
    case "none":
      return text;
    case "ignored":
      return `${text}, which is told no cookie: all are ignored`;
    case "own":
      return `${text}; the backend is told the cookies, and its answer is stored only where it says itself that it is for all`;
    default:
      return use satisfies never;
  }
}

function passText(reason: PassReason, use: CookieUse): string {
  switch (reason) {
    case "bypass":
      return "a rule of the devlove bypasses the cache";
    case "cookie":
      return `passed on to the backend, and not stored: the rule has a ttl_s, and ${ownCookie(use)} is not ignored`;
    case "request":
    case "method":
      return "passed on to the backend, and not stored: `?` stands alone at the end";
    default:
      return reason satisfies never;
  }
}

function ownCookie(use: CookieUse): string {
  return use.kind === "own" && use.name !== undefined
    ? `the cookie ${JSON.stringify(use.name)}`
    : "a cookie whose name cannot be read";
}

function meetsFile(served: ServedSite, { path, size }: SiteFile, what: string): Met {
  const text = `${what} ${path}, ${size} bytes`;
  const key = keyOf(served, "static", path, "");
  return { serves: "static", text, key, isCacheable: true };
}

/** Neither a file nor a backend: the single page, the page for what is not there, or a plain 404. */
async function meetsAbsent(served: ServedSite): Promise<Met> {
  const { site, files } = served;
  const none = { serves: "nothing", key: undefined, isCacheable: false } as const;
  const text = "no file and no backend";
  if (site.single_page !== null) {
    await using page = await files.find(site.single_page);
    if (page !== undefined) return meetsFile(served, page, `${text}: the single page`);
  }
  if (site.not_found !== null) {
    await using page = await files.find(site.not_found);
    if (page !== undefined) return { ...none, text: `${text}: 404 with the page ${page.path}` };
  }
  return { ...none, text: `${text}: 404` };
}

function keyOf(
  { site }: Pick<ServedSite, "site">,
  kind: EntryKey["kind"],
  path: string,
  query: string,
): EntryKey {
  return { domain: site.main_domain, host: site.host, kind, path, query };
}

/** What is looked up now, and what the URL may have been before: a file that is gone, a page where there is a file now. */
function keysOf(
  domain: string,
  { host, rawPath, rawQuery }: UrlArgument,
  { key }: Met,
  compiled: ServedSite | undefined,
): readonly EntryKey[] {
  const routes: SiteRoutes | undefined = compiled?.routes ?? undefined;
  const query = routes?.cache(rawPath).normalizeQuery(rawQuery) ?? rawQuery;
  const file = decodePath(rawPath);
  const candidates: readonly (EntryKey | undefined)[] = [
    key,
    { domain, host, kind: "generated", path: rawPath, query },
    file === undefined ? undefined : { domain, host, kind: "static", path: file, query: "" },
  ];
  const byText = new Map(
    candidates.filter((one) => one !== undefined).map((one) => [JSON.stringify(one), one]),
  );
  return [...byText.values()];
}

type Told = ReturnType<typeof told>;

function told(
  entry: WhyKey["entries"][number],
  { queryRule = "", inForce }: Partial<CacheRoute> = {},
  nowMs: number,
  doubt: Doubt | undefined,
) {
  const { [queryRuleName]: storedRule = "", ...vary } = entry.vary ?? {};
  const { freshForS } = inForce?.(entry) ?? entry;
  const isForCookies = freshForS > 0 || mayServeCookies(entry.headers);
  const freshUntilMs = entry.storedAtMs + (freshForS - entry.initialAgeS) * 1_000;
  return {
    id: entry.id,
    kind: entry.kind,
    path: entry.path,
    query: entry.query,
    status: entry.status,
    mime: entry.mime,
    coding: entry.coding,
    size: entry.size,
    vary: entry.vary === null ? null : vary,
    // It was stored while another part of the query was left out: not used any more.
    of_another_rule: storedRule !== "" && storedRule !== queryRule,
    stored_at: isoMs(entry.storedAtMs),
    fresh_until: entry.kind === "static" ? null : isoMs(freshUntilMs),
    age_s: Math.round((nowMs - entry.storedAtMs) / 1_000 + entry.initialAgeS),
    is_fresh: entry.kind === "static" || freshUntilMs > nowMs,
    source_no: entry.sourceNo,
    servable: entry.servable,
    // False: it is not used before the origin has said that it still holds. Files are compared with their source instead.
    confirmed: entry.kind === "static" || doubt === undefined,
    // As the origin said itself: what has no lifetime of its own answers no request with cookies.
    for_cookies: entry.kind === "static" || isForCookies,
  };
}

function cacheWord(usable: readonly Told[]): string {
  if (usable.length === 0) return "miss";
  const isTrusted = usable.some(({ confirmed }) => confirmed);
  const lasts = usable.some(({ is_fresh: isFresh }) => isFresh) ? "hit" : "stale";
  const state = isTrusted ? lasts : "unconfirmed, the origin is asked";
  // The scheme is a part of the URL, whatever a variant says of it.
  const depends = usable.every(({ vary }) =>
    Object.keys(vary ?? {}).some((name) => name !== "x-forwarded-proto"),
  );
  return depends ? `${state}, for requests like the variant` : state;
}

function doubtText(doubt: Doubt | undefined, dropsUntil: string | null): string {
  switch (doubt) {
    case "to be dropped": {
      const when = dropsUntil === null ? "soon" : `by ${dropsUntil}`;
      return `what is cached is sent only when the origin confirms it: central was restored, and the domain's cache is dropped ${when}`;
    }
    case "clears unconfirmed":
      return "what is cached is sent only when the origin confirms it: since the agent's start, central has not said that no clear was missed";
    case undefined:
      return "what is cached is sent";
    default:
      return doubt satisfies never;
  }
}

function departureText(
  reason: WhyKey["departures"][number]["reason"],
  clear: ClearSeen | null,
): string {
  switch (reason) {
    case "cleared":
      return clear === null ? "cleared, by a clear that is not known any more" : "cleared";
    case "evicted":
      return "evicted: not used for the longest time when the cache was full";
    case "replaced":
      return "replaced by a newer response";
    case "invalidated":
      return "invalidated by the answer to an unsafe method (RFC 9111 section 4.4)";
    case "lost":
      return "lost: its body was missing or damaged on disk";
    default:
      return reason satisfies never;
  }
}

function clearFacts(clear: ClearSeen) {
  return {
    clear_no: clear.clearNo,
    clear_id: clear.clearId,
    at: iso(clear.atS),
    by: givenBy(clear),
    of: clear.host ?? clear.domain ?? "all domains",
    patterns: clear.patterns ?? "everything",
    ...(clear.widened && { widened: true }),
    matched: clear.matched,
  };
}

function givenBy({ seq, clearId }: ClearSeen): string {
  if (seq > 0) return `central, journal entry ${seq}`;
  if (clearId.startsWith("local-")) return "accel-agent cache clear on this host";
  if (clearId.startsWith("unlinked-"))
    return "the agent: domain or host unlinked, or a snapshot taken over";
  return "the agent itself";
}

/** Newest first; each clear once, matching where it matches any of the keys. */
function clearsTold(known: readonly WhyKey[]) {
  const byNo = new Map<number, ClearSeen & { matches: boolean }>();
  for (const { clears } of known)
    for (const clear of clears) {
      const before = byNo.get(clear.clearNo);
      byNo.set(clear.clearNo, { ...clear, matches: clear.matches || before?.matches === true });
    }
  const all = [...byNo.values()].toSorted((a, b) => b.clearNo - a.clearNo);
  const shown = (matches: boolean) =>
    all
      .filter((clear) => clear.matches === matches)
      .slice(0, clearsShown)
      .map(clearFacts);
  return {
    matching: shown(true),
    not_matching: shown(false),
    mime_known: known.some(({ mime }) => mime !== null),
  };
}

function iso(seconds: number): string {
  return isoMs(seconds * 1_000);
}

function isoMs(ms: number): string {
  return new Date(ms).toISOString();
}
