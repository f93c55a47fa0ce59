// Why an URL is cached, or is not any more: its entries, what went of it, and which clears that concern it match it and which do not. Read-only, bounded.

import type { ClearSeen } from "../clearing/clear-sql.ts";
import { patternListsFor } from "../clearing/selection.ts";
import type { Departure } from "./departures.ts";
import type { Entry, EntryKey } from "../entry.ts";
import type { Guard } from "./guard.ts";
import type { Lookups } from "../worker/lookups.ts";
import type { OpenIndex } from "./open-index.ts";
import type { Anew } from "./opening.ts";

/**
 * The most clears that are shown. At 8 µs an evaluation and 64 patterns a clear they take 50 ms at worst, in
 * which fills wait.
 */
const clearsMax = 100;
const departuresShown = 10;

export type WhyKey = {
  readonly key: EntryKey;
  /** Newest first, coded ones too. */
  readonly entries: readonly (Entry & {
    readonly servable: boolean;
    /** Since when a soft clear has made it stale, s of the wall clock; null: none has. */
    readonly softenedS: number | null;
  })[];
  /** Newest first. */
  readonly departures: readonly (Departure & { readonly clear: ClearSeen | null })[];
  /**
   * The media type of the URL as it is cached, or was last; null if it never was, and the patterns are
   * matched without one.
   */
  readonly mime: string | null;
  /** The clears of the domain or host, newest first. */
  readonly clears: readonly (ClearSeen & { readonly matches: boolean })[];
};
export type WhyAnswer = {
  readonly keys: readonly WhyKey[];
  /** Number of the newest clear. */
  readonly clearNo: number;
  /** Nothing is known of the time before this. */
  readonly anew: Anew | null;
};

export function explain(
  { index, lookups, guard }: { index: OpenIndex; lookups: Lookups; guard: Guard },
  keys: readonly EntryKey[],
): WhyAnswer {
  return {
    keys: keys.map((key) => explainKey({ index, lookups, guard }, key)),
    clearNo: index.clears.newest,
    anew: index.madeAnew() ?? null,
  };
}

function explainKey(
  { index, lookups, guard }: { index: OpenIndex; lookups: Lookups; guard: Guard },
  key: EntryKey,
): WhyKey {
  const { fresh, softSinceS } = index;
  const softenedOf = (id: number): number | null =>
    fresh.has(id) ? null : (lookups.softenedSince(id) ?? softSinceS);
  const entries = lookups
    .find(key, () => true)
    .map((entry) => ({
      ...entry,
      servable: index.bits.has(entry.id) && (entry.baseId === null || index.bits.has(entry.baseId)),
      softenedS: softenedOf(entry.baseId ?? entry.id),
    }));
  const concerning = index.clears.concerning(key, clearsMax);
  const byNo = new Map(concerning.map((clear) => [clear.clearNo, clear]));
  const departures = index.departures.of(key, departuresShown).map((departure) => ({
    ...departure,
    clear:
      departure.clearNo === null
        ? null
        : (byNo.get(departure.clearNo) ?? index.clears.seen(departure.clearNo) ?? null),
  }));
  const mime = entries[0]?.mime ?? departures[0]?.mime ?? null;
  const { kind, path, query } = key;
  const tagsOfEach = new Set(entries.map(({ id, baseId }) => index.entries.tagsOf(baseId ?? id)));
  // Of what has gone no tags are known; the clear that took it is.
  const candidates = [...(tagsOfEach.size === 0 ? [""] : tagsOfEach)].map((tags) => ({
    kind,
    path,
    query,
    mime: mime ?? "",
    tags,
  }));
  const took = new Set(departures.map(({ clearNo }) => clearNo));
  const matchesNow = (clear: ClearSeen): boolean => {
    const lists = patternListsFor(clear, key.host);
    return lists === null || candidates.some((each) => guard.firstMatch(each, [lists]) === 0);
  };
  const clears = concerning.map((clear) => ({
    ...clear,
    matches: clear.widened || took.has(clear.clearNo) || matchesNow(clear),
  }));
  return { key, entries, departures, mime, clears };
}
