// `/analytics/{domain}/`: what the domain's requests add up to, in all and in each span of time.

import { Type, type Static } from "typebox";
import { finenesses } from "../../core/analytics/time-buckets.ts";
import { tallies } from "../../core/analytics/request-counts.ts";
import type { QueryParameter } from "./operation.ts";
import { open, shape } from "./shape.ts";

/** Lists of the most frequent keys: the value of `by`, and which list it is. */
export const topLists = {
  top_paths: "path",
  top_status_paths: "status_path",
  top_bots: "bot",
  top_addresses: "address",
} as const;
export type TopListName = keyof typeof topLists;

/** Values of `by`. */
export const analyticsBy = [
  ...tallies,
  "top_paths",
  "top_status_paths",
  "top_bots",
  "top_addresses",
] as const;
export type AnalyticsBy = (typeof analyticsBy)[number];

/** The most spans of one answer. */
export const analyticsSpansMax = 3_000;

const percentileText =
  "Seconds. Percentiles are at most 2 % off, and null where there was no request.";
const timesOf = (about: string) =>
  open(
    {
      requests: Type.Number({ description: "How many requests had such a time." }),
      seconds: Type.Number({ description: "The sum of their times." }),
      p50: Type.Union([Type.Number(), Type.Null()]),
      p95: Type.Union([Type.Number(), Type.Null()]),
      p99: Type.Union([Type.Number(), Type.Null()]),
    },
    { description: `${about} ${percentileText}` },
  );

const figures = {
  requests: Type.Number(),
  hits: Type.Number({ description: "Requests that were answered from the cache, fresh or stale." }),
  bytes: Type.Number({ description: "Bytes sent to visitors." }),
  saved_bytes: Type.Number({ description: "Bytes of hits, which no origin sent." }),
  missing: open(
    { at_least: Type.Number(), at_most: Type.Number() },
    {
      description:
        "Records that agents told as lost: at least and at most so many. They are of all domains of the domain's deployment sites, for nobody knows of which domain a lost record was.",
    },
  ),
  origin: timesOf("The time of origins, where one was asked."),
  edge: timesOf("The time of each request without its origin's."),
  counts: Type.Optional(
    Type.Record(Type.String(), Type.Number(), {
      description:
        "Requests by the value that `by` names. Up to 64 values have a count of their own; `other` counts the rest.",
    }),
  ),
};

export const AnalyticsSpan = open(
  {
    at: Type.Number({ description: "When the span begins, in seconds since the epoch." }),
    ...figures,
  },
  { title: "AnalyticsSpan" },
);
export type AnalyticsSpan = Static<typeof AnalyticsSpan>;

const TopEntry = open({
  key: Type.String(),
  requests: Type.Number({ description: "At most so many requests." }),
  error: Type.Number({ description: "At least `requests` - `error` requests." }),
});

const times = { requests: 900, seconds: 81.2, p50: 0.072, p95: 0.19, p99: 0.44 };
const exampleFigures = {
  requests: 3_600,
  hits: 2_700,
  bytes: 86_400_000,
  saved_bytes: 64_800_000,
  missing: { at_least: 0, at_most: 0 },
  origin: times,
  edge: { ...times, requests: 3_600 },
  counts: { "200": 3_580, "404": 20 },
};

export const Analytics = open(
  {
    domain: Type.String(),
    step: Type.Enum([...finenesses]),
    since: Type.Number({ description: "When the first span begins, in seconds since the epoch." }),
    until: Type.Number({ description: "When the last span ends." }),
    complete: Type.Boolean({
      description:
        "False while counts are still being brought together, after a restore for example: the numbers are too small then.",
    }),
    totals: open(figures),
    series: Type.Array(AnalyticsSpan, { description: "Every span from `since` to `until`." }),
    tops: Type.Optional(
      Type.Array(TopEntry, {
        description:
          "The most frequent keys with their requests, the most frequent first, where `by` names such a list.",
      }),
    ),
  },
  {
    title: "Analytics",
    description:
      "Requests by when they happened. Those of sub-domains count under their main domain, as they are listed in the request logs.",
    examples: [
      {
        domain: "www.example.com",
        step: "hour",
        since: 1_795_000_000 - (1_795_000_000 % 3_600),
        until: 1_795_000_000 - (1_795_000_000 % 3_600) + 3_600,
        complete: true,
        totals: exampleFigures,
        series: [{ at: 1_795_000_000 - (1_795_000_000 % 3_600), ...exampleFigures }],
      },
    ],
  },
);
export type Analytics = Static<typeof Analytics>;
export const analyticsShape = shape(Analytics);

const time = { type: "string", examples: ["2026-11-22T00:00:00Z"] };
const timeText = "seconds since the epoch or an ISO 8601 time";
export const analyticsParameters: Readonly<Record<string, QueryParameter>> = {
  since: {
    schema: time,
    description: `The first span is the one of this time: ${timeText}. A day before until where it is left out.`,
  },
  until: {
    schema: time,
    description: `The last span is the one of this time: ${timeText}. Now where it is left out.`,
  },
  step: {
    schema: { type: "string", enum: [...finenesses] },
    description: `The length of a span. Minutes are kept for 2 days, hours for 60, days (UTC) for 800; at most ${analyticsSpansMax} spans are answered. Where it is left out: minute for up to 6 hours, hour for up to 14 days, day for more.`,
  },
  by: {
    schema: { type: "string", enum: [...analyticsBy] },
    description:
      "What tells requests apart: status, cache, verdict, reason (of the verdict) or bot give each span counts by value; top_paths (without query), top_status_paths (status and path), top_bots and top_addresses give the most frequent keys in all. Those are kept by hour for 7 days and by day for 90, addresses only as long as the request logs, and only for users who may read them.",
  },
};
