// What `accel-agent why URL` says of the cache: what is stored for the URL, what became of earlier entries,
// and the clears that concern it.

import { isFresh, staleSince } from "../core/http/http-age.ts";
import { mayAnswer } from "../core/http/http-reuse.ts";
import { CACHE_DEFAULTS } from "../core/serving/cache-defaults.ts";
import { requestEditsKey, ruleChoiceName, toldCookiesName } from "../core/http/http-vary.ts";
import { variesByRule } from "../core/http/request-cookies.ts";
import { imageChance } from "../core/images/image-forms.ts";
import type { CacheRoute } from "../core/serving/cache-route.ts";
import type { SiteConfig } from "../core/serving/effective-devlove.ts";
import { queryRuleName } from "../core/serving/site-routes.ts";
import { formingOf } from "./accelerator/cached/forms.ts";
import type { ClearSeen } from "./cache/clearing/clear-sql.ts";
import { shownPatterns } from "./cache/clearing/selection.ts";
import type { Doubt } from "./cache/index/index-client.ts";
import type { WhyAnswer, WhyKey } from "./cache/index/why.ts";

/** The most clears that are shown of each kind; the newest are. */
const clearsShown = 5;

export type StoredEntry = WhyKey["entries"][number];

type Now = { readonly doubt: Doubt | undefined; readonly nowMs: number };

/** Describes the cached entries under the rule in force; `rule` and `site` are undefined if no devlove is in force. */
export function cachedTold(
  { keys, clearNo, anew }: WhyAnswer,
  now: Now,
  rule: CacheRoute | undefined,
  site: SiteConfig | undefined,
) {
  return {
    cached: keys.flatMap(({ entries }) =>
      entries.map((entry) => ({
        ...told(asItsBase(entry, entries), now, rule),
        ...imagesTold(entry, rule, site),
      })),
    ),
    departed: keys
      .flatMap(({ key, departures }) => departures.map((one) => ({ kind: key.kind, ...one })))
      .map(({ kind, reason, clearNo: no, clear, mime, atS }) => ({
        at: iso(atS),
        kind,
        mime,
        reason: departureText(reason, clear),
        ...(no !== null && { clear_no: no }),
        ...(clear !== null && { clear: clearFacts(clear) }),
      }))
      .toSorted((a, b) => (a.at < b.at ? 1 : -1)),
    clears: clearsTold(keys),
    newest_clear_no: clearNo,
    known_since: anew === null ? null : { at: iso(anew.atS), because: anew.reason },
  };
}

/** Returns a variant with the head and the times of what it was made of, which count. */
function asItsBase(entry: StoredEntry, entries: readonly StoredEntry[]): StoredEntry {
  const base = entries.find(({ id }) => id === entry.baseId);
  if (base === undefined) return entry;
  const { headers, storedAtMs, initialAgeS, freshForS, softenedS } = base;
  return { ...entry, headers, storedAtMs, initialAgeS, freshForS, softenedS };
}

/** Says of a picture in which formats visitors may get it, or why in none, where the site wants it. */
function imagesTold(
  entry: StoredEntry,
  rule: CacheRoute | undefined,
  site: SiteConfig | undefined,
) {
  if (site?.images.optimize !== true || entry.form !== null) return {};
  if (!entry.mime.startsWith("image/")) return {};
  const { images, headers } = formingOf(site, rule, entry.headers);
  // A rule with `vary: ["Accept"]` leaves the choice to the origin.
  if (!images.optimize) return { image_variants: "none: the rule tells answers apart by Accept" };
  const chance = imageChance(images, headers, entry);
  if (chance.kind === "none") return { image_variants: `none: ${chance.because}` };
  const words = [
    ...(chance.formats.length > 0 ? [chance.formats.join(", ")] : []),
    ...(images.widths.length > 0 ? [`widths ${images.widths.join(", ")}`] : []),
  ];
  return { image_variants: words.length > 0 ? words.join("; ") : "none: its format is as small as any that is wanted" }; // prettier-ignore
}

function told(
  entry: StoredEntry,
  { doubt, nowMs }: Now,
  {
    queryRule = "",
    choice = "",
    requestEdits = "",
    varyNames = [],
    settings,
    forAnswer,
  }: Partial<CacheRoute> = {},
) {
  const {
    [queryRuleName]: storedRule = "",
    [ruleChoiceName]: storedChoice = "",
    [requestEditsKey]: storedEdits = "",
    [toldCookiesName]: cookie,
    ...vary
  } = entry.vary ?? {};
  const rule = forAnswer?.(entry.headers);
  const isStatic = entry.kind === "static";
  const isSoftened = entry.softenedS !== null && !isStatic;
  const lasting = rule?.inForce(entry) ?? entry;
  const current = isSoftened ? staleSince(lasting, (entry.softenedS ?? 0) * 1_000, nowMs) : lasting;
  const { freshForS } = current;
  return {
    id: entry.id,
    kind: entry.kind,
    path: entry.path,
    query: entry.query,
    status: entry.status,
    mime: entry.mime,
    coding: entry.form,
    size: entry.size,
    vary: entry.vary === null ? null : { ...vary, ...(cookie !== undefined && { cookie }) },
    // True if it was stored while another part of the query was left out, no cookie or field told answers
    // apart, or a rule set or removed other headers of the request; it is no longer used then.
    of_another_rule:
      (storedRule !== "" && storedRule !== queryRule) ||
      (!isStatic && (storedChoice === "") !== (choice === "")) ||
      (!isStatic && storedEdits !== requestEdits) ||
      (!isStatic && varyNames.some((name) => vary[name] === undefined)) ||
      (!isStatic &&
        cookie === undefined &&
        settings !== undefined &&
        variesByRule(settings.cookies)),
    ...(!isStatic && rule?.mediaTypes !== undefined && { rule_media_types: rule.mediaTypes }),
    stored_at: isoMs(entry.storedAtMs),
    fresh_until: isStatic
      ? null
      : isoMs(entry.storedAtMs + (freshForS - entry.initialAgeS) * 1_000),
    age_s: Math.round((nowMs - entry.storedAtMs) / 1_000 + entry.initialAgeS),
    is_fresh: isStatic || isFresh(current, nowMs),
    ...(isSoftened && { softly_cleared_at: iso(entry.softenedS ?? 0) }),
    source_no: entry.sourceNo,
    servable: entry.servable,
    // False if it is not used before the origin has confirmed it. Files are compared with their source
    // instead.
    confirmed: isStatic || doubt === undefined,
    // Decided by what the origin said: an entry without a lifetime of its own answers no request with
    // cookies.
    for_cookies:
      isStatic || mayAnswer(lasting, { hasOwnCookies: true }, rule?.settings ?? CACHE_DEFAULTS),
  };
}

function departureText(
  reason: WhyKey["departures"][number]["reason"],
  clear: ClearSeen | null,
): string {
  switch (reason) {
    case "cleared":
      return clear === null ? "cleared, by a clear that is no longer known" : "cleared";
    case "evicted":
      return "evicted: least recently used when the cache was full";
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
    ...patternsShown(clear),
    ...(clear.isSoft && { soft: true }),
    ...(clear.widened && { widened: true }),
    matched: clear.matched,
  };
}

/** A clear by URLs may have thousands. */
const patternsShownMax = 64;

function patternsShown(clear: ClearSeen) {
  const patterns = shownPatterns(clear);
  if (patterns === null) return { patterns: "everything" };
  const more = patterns.length - patternsShownMax;
  return {
    patterns: patterns.slice(0, patternsShownMax),
    ...(more > 0 && { more_patterns: more }),
  };
}

function givenBy({ seq, clearId }: ClearSeen): string {
  if (seq > 0) return `central, journal entry ${seq}`;
  if (clearId.startsWith("local-")) return "accel-agent cache clear on this host";
  if (clearId.startsWith("unlinked-"))
    return "the agent: domain or host unlinked, or a snapshot taken over";
  if (clearId.startsWith("rules-")) return "the agent: other query parameters count than before";
  return "the agent itself";
}

/** Lists the clears, newest first and each once; a clear matches if it matches any of the keys. */
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
