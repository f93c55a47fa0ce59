// Answers a question about numbers from `analytics.db`: the spans of a domain summed over its deployment sites and over
// the files that they came from. The answer is made as text, so that central's main thread does not encode it.

import { RequestCounts, tallies, type TallyName } from "../../core/analytics/request-counts.ts";
import type { QuantileSketch } from "../../core/analytics/quantile-sketch.ts";
import { TopKeys } from "../../core/analytics/space-saving.ts";
import { bucketOf, bucketSeconds, type Fineness } from "../../core/analytics/time-buckets.ts";
import {
  topLists,
  type Analytics,
  type AnalyticsSpan,
  type AnalyticsBy,
  type TopListName,
} from "../../wire/customer/analytics.ts";
import type { AnalyticsFile } from "./analytics-file.ts";
import { readableTop } from "./analytics-fold.ts";
import { readableCounts } from "./log-day-counts.ts";

export type AnalyticsQuery = {
  /** The customer's deployment sites. */
  readonly siteIds: readonly number[];
  /** Those that the domain is linked to now. What is missing of them counts even if they have no record of it. */
  readonly linkedSiteIds: readonly number[];
  /** A main domain. */
  readonly domain: string;
  /** Seconds since the epoch; both are in the first and the last span. */
  readonly since: number;
  readonly until: number;
  readonly step: Fineness;
  readonly by: AnalyticsBy | undefined;
  readonly nowMs: number;
};

export type AnalyticsAnswer =
  /** `text` is the JSON of `Analytics` (`wire/customer/analytics.ts`). */
  | { readonly kind: "numbers"; readonly text: string }
  /** What was asked for is kept since then only, in seconds since the epoch. */
  | { readonly kind: "not_kept"; readonly since: number };

/** Answers. `complete` says whether all is folded. */
export function viewAnalytics(
  file: AnalyticsFile,
  query: AnalyticsQuery,
  complete: boolean,
): AnalyticsAnswer {
  const { domain, step, by, nowMs } = query;
  const since = bucketOf(query.since, step);
  const until = bucketOf(query.until, step) + bucketSeconds[step];
  const list = by === undefined ? undefined : listOf(by);
  // The oldest span is not whole any more.
  const kept = Math.max(
    file.countsSince(step, nowMs / 1e3),
    list === undefined || step === "minute" ? 0 : file.topsSince(step, nowMs / 1e3),
  );
  const first = bucketOf(kept + bucketSeconds[step] - 1, step);
  if (since < first) return { kind: "not_kept", since: first };
  const tally = tallies.find((one) => one === by);
  const wanted = tally === undefined ? [] : [tally];
  const spans = spansOf(file, query, [since, until]);
  const total = new RequestCounts();
  const shown = new Figures(tally);
  const series: string[] = [];
  // Each span is read and written as text by itself: thousands of them would be much to hold.
  for (let at = since; at < until; at += bucketSeconds[step]) {
    const counts = countsOf(spans.get(at), wanted);
    total.merge(counts);
    const span: AnalyticsSpan = { at, ...shown.of(counts) };
    series.push(JSON.stringify(span));
  }
  const head: Omit<Analytics, "series" | "tops"> = {
    domain,
    step,
    since,
    until,
    complete,
    totals: shown.of(total),
  };
  const tops =
    list === undefined
      ? ""
      : `,"tops":${JSON.stringify(topsOf(file, query, list, [since, until]))}`;
  const text = `${JSON.stringify(head).slice(0, -1)},"series":[${series.join(",")}]${tops}}`;
  return { kind: "numbers", text };
}

function listOf(by: AnalyticsBy): TopListName | undefined {
  return by in topLists ? (by as TopListName) : undefined;
}

/** What is stored of a span: counts of the domain, and counts of its deployment sites, which tell what is missing. */
type Stored = { readonly own: Uint8Array[]; readonly ofSites: Uint8Array[] };

function spansOf(
  file: AnalyticsFile,
  { siteIds, linkedSiteIds, domain, step }: AnalyticsQuery,
  bounds: readonly [number, number],
): ReadonlyMap<number, Stored> {
  const spans = new Map<number, Stored>();
  const spanAt = (at: number): Stored => {
    const known = spans.get(at) ?? { own: [], ofSites: [] };
    spans.set(at, known);
    return known;
  };
  for (const siteId of siteIds) {
    const own = file.knownSeries(siteId, domain);
    const site = file.knownSeries(siteId, "");
    for (const { at, counts } of own === undefined ? [] : file.counts(own, step, bounds))
      spanAt(at).own.push(counts);
    if (site === undefined || (own === undefined && !linkedSiteIds.includes(siteId))) continue;
    for (const { at, counts } of file.counts(site, step, bounds)) spanAt(at).ofSites.push(counts);
  }
  return spans;
}

function countsOf(stored: Stored | undefined, wanted: readonly TallyName[]): RequestCounts {
  const { own, ofSites } = stored ?? { own: [], ofSites: [] };
  const [first, ...more] = own;
  const sum = readableCounts(first, wanted);
  for (const counts of more) sum.merge(readableCounts(counts, wanted));
  for (const counts of ofSites) {
    const { missingAtLeast, missingAtMost } = readableCounts(counts, []);
    sum.miss(missingAtLeast, missingAtMost);
  }
  return sum;
}

function topsOf(
  file: AnalyticsFile,
  { siteIds, domain, step }: AnalyticsQuery,
  list: TopListName,
  bounds: readonly [number, number],
): NonNullable<Analytics["tops"]> {
  const sum = new TopKeys();
  for (const siteId of siteIds) {
    const own = file.knownSeries(siteId, domain);
    if (own === undefined || step === "minute") continue;
    for (const keys of file.tops(own, step, topLists[list], bounds)) sum.merge(readableTop(keys));
  }
  return sum.list().map(({ key, count, error }) => ({ key, requests: count, error }));
}

/** Shows counts as an answer has them. */
class Figures {
  readonly #tally: TallyName | undefined;
  /** Percentiles are those of bins, so the same ones come again and again. */
  readonly #seconds = new Map<number, number>();

  constructor(tally: TallyName | undefined) {
    this.#tally = tally;
  }

  of(counts: RequestCounts): Analytics["totals"] {
    const { requests, hits, bytes, savedBytes, missingAtLeast, missingAtMost } = counts;
    const tally = this.#tally;
    return {
      requests,
      hits,
      bytes,
      saved_bytes: savedBytes,
      missing: { at_least: missingAtLeast, at_most: missingAtMost },
      origin: this.#timesOf(counts.origin),
      edge: this.#timesOf(counts.edge),
      ...(tally !== undefined && { counts: Object.fromEntries(counts.by[tally]) }),
    };
  }

  #timesOf(sketch: QuantileSketch): Analytics["totals"]["origin"] {
    const seconds = sketch.sum / 1e6;
    const [p50, p95, p99] = sketch.quantiles(shares) ?? [];
    return {
      requests: sketch.count,
      seconds,
      p50: this.#secondsOf(p50),
      p95: this.#secondsOf(p95),
      p99: this.#secondsOf(p99),
    };
  }

  #secondsOf(micros: number | undefined): number | null {
    if (micros === undefined) return null;
    const known = this.#seconds.get(micros);
    if (known !== undefined) return known;
    const seconds = Number((micros / 1e6).toPrecision(4));
    this.#seconds.set(micros, seconds);
    return seconds;
  }
}

const shares = [0.5, 0.95, 0.99] as const;
