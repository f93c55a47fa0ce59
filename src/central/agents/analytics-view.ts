// Answers a question about numbers from `analytics.db`: the spans of a domain summed over its deployment sites and over
// the files that they came from. The answer is made as text, so that central's main thread does not encode it.

import { RequestCounts, tallies, type TallyName } from "../../core/analytics/request-counts.ts";
import type { QuantileSketch } from "../../core/analytics/quantile-sketch.ts";
import { TopKeys } from "../../core/analytics/space-saving.ts";
import { bucketOf, bucketSeconds, type Fineness } from "../../core/analytics/time-buckets.ts";
import {
  topLists,
  type Analytics,
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
  const spans = spansOf(file, query, [since, until]);
  const total = new RequestCounts();
  const series = [];
  for (let at = since; at < until; at += bucketSeconds[step]) {
    const counts = spans.get(at) ?? new RequestCounts();
    total.merge(counts);
    series.push({ at, ...figuresOf(counts, tally) });
  }
  const answer: Analytics = {
    domain,
    step,
    since,
    until,
    complete,
    totals: figuresOf(total, tally),
    series,
    ...(list !== undefined && { tops: topsOf(file, query, list, [since, until]) }),
  };
  return { kind: "numbers", text: JSON.stringify(answer) };
}

function listOf(by: AnalyticsBy): TopListName | undefined {
  return by in topLists ? (by as TopListName) : undefined;
}

function spansOf(
  file: AnalyticsFile,
  { siteIds, linkedSiteIds, domain, step }: AnalyticsQuery,
  bounds: readonly [number, number],
): ReadonlyMap<number, RequestCounts> {
  const spans = new Map<number, RequestCounts>();
  const spanAt = (at: number): RequestCounts => {
    const known = spans.get(at) ?? new RequestCounts();
    spans.set(at, known);
    return known;
  };
  for (const siteId of siteIds) {
    const own = file.knownSeries(siteId, domain);
    const site = file.knownSeries(siteId, "");
    for (const { at, counts } of own === undefined ? [] : file.counts(own, step, bounds)) {
      const read = readableCounts(counts);
      const known = spans.get(at);
      if (known === undefined) spans.set(at, read);
      else known.merge(read);
    }
    if (site === undefined || (own === undefined && !linkedSiteIds.includes(siteId))) continue;
    for (const { at, counts } of file.counts(site, step, bounds)) {
      const { missingAtLeast, missingAtMost } = readableCounts(counts);
      spanAt(at).miss(missingAtLeast, missingAtMost);
    }
  }
  return spans;
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

function figuresOf(counts: RequestCounts, tally: TallyName | undefined): Analytics["totals"] {
  const { requests, hits, bytes, savedBytes, missingAtLeast, missingAtMost } = counts;
  return {
    requests,
    hits,
    bytes,
    saved_bytes: savedBytes,
    missing: { at_least: missingAtLeast, at_most: missingAtMost },
    origin: timesOf(counts.origin),
    edge: timesOf(counts.edge),
    ...(tally !== undefined && { counts: Object.fromEntries(counts.by[tally]) }),
  };
}

function timesOf(sketch: QuantileSketch): Analytics["totals"]["origin"] {
  const seconds = sketch.sum / 1e6;
  const shares = sketch.quantiles([0.5, 0.95, 0.99]);
  const [p50 = null, p95 = null, p99 = null] = (shares ?? []).map((micros) =>
    Number((micros / 1e6).toPrecision(4)),
  );
  return { requests: sketch.count, seconds, p50, p95, p99 };
}
