// Whether the cache answers much less than it did, or many requests fail: what a customer should hear of before anybody calls. Pure.

import type { Analytics } from "../wire/customer/analytics.ts";
import { countInClass } from "./status-class.ts";
import { percent } from "./words.ts";

type Series = readonly Pick<Analytics["series"][number], "requests" | "hits" | "counts">[];

/** Fewer requests say nothing. */
const requestsLeast = 50;
/** A cache that answers less than this is no great help anyway. */
const usualLeast = 0.3;

/** What is held against the time before: the last minutes in which enough was asked. */
const recentMinutes = [5, 15] as const;

/** How many minutes are asked for of a young domain: its fall is told for as long as one block before it is among them. */
const minutesOfYoung = 60;
/** Of a domain without earlier hours, the best block of so many minutes says how it was. */
const blockMinutes = 15;
/** The best of many blocks is good by chance as well: so many standard deviations it lies above what is now. */
const deviationsLeast = 5;

/**
 * Returns what to ask for: whole minutes, in seconds since the epoch; the minute that goes on would pass for one with few hits, or with few requests. `nextS` is when the
 * next minute begins; `hours` are those of the last day.
 */
export function recentWindow(
  nextS: number,
  hours: Series,
): { readonly since: number; readonly until: number } {
  const begunS = nextS - 60;
  const minutes = hasEarlier(hours) ? Math.max(...recentMinutes) : minutesOfYoung;
  // The minute that the end of a window is in is told as well.
  return { since: begunS - minutes * 60, until: begunS - 1 };
}

/** The hours that may have a fall in them say nothing of the time before. */
const earlierOf = (hours: Series): Sum => sumOf(hours.slice(0, -2));
const hasEarlier = (hours: Series): boolean => earlierOf(hours).asked >= requestsLeast;

/**
 * Says that the cache answers less than half as often as before. `hours` are those of the last day, `minutes` those of `recentWindow`, both by `cache`. Undefined: it does not, or
 * too little was asked.
 */
export function fallOf(hours: Series, minutes: Series): string | undefined {
  const recent = recentMinutes
    .map((count) => ({ count, sum: sumOf(minutes.slice(-count)) }))
    .find(({ sum }) => sum.asked >= requestsLeast);
  if (recent === undefined) return undefined;
  const { count, sum: now } = recent;
  const before = hasEarlier(hours)
    ? earlierOf(hours)
    : bestBefore(hours, minutes.slice(0, -count), now);
  if (before === undefined || !standsOut(before, now)) return undefined;
  const [usual, share] = [before.hits / before.asked, now.hits / now.asked];
  if (usual < usualLeast || share >= usual / 2) return undefined;
  const because =
    now.passed > now.asked / 2
      ? `; ${percent(now.passed, now.asked)} were not to be stored: a rule, or the backend, forbids it`
      : "";
  return `the cache answered ${percent(now.hits, now.asked)} of the last ${count} minutes, and ${percent(before.hits, before.asked)} before, not counting what never came to it${because}`;
}

/**
 * Returns the best time that a young domain had: one of its whole hours, or a block of the minutes before. What adds up over all of them has the fall in it, and more
 * of it each minute. Undefined: none had enough requests, or stands out from what is now.
 */
function bestBefore(hours: Series, minutes: Series, now: Sum): Sum | undefined {
  const blocks = minutes
    .slice(blockMinutes - 1)
    .map((_last, from) => minutes.slice(from, from + blockMinutes));
  return [...hours.slice(0, -1).map((hour) => [hour]), ...blocks]
    .map((series) => sumOf(series))
    .filter((sum) => sum.asked >= requestsLeast && standsOut(sum, now))
    .toSorted((a, b) => b.hits / b.asked - a.hits / a.asked)[0];
}

/** Compares two shares as a test of two proportions does. */
function standsOut(before: Sum, now: Sum): boolean {
  const share = (before.hits + now.hits) / (before.asked + now.asked);
  const deviation = Math.sqrt(share * (1 - share) * (1 / before.asked + 1 / now.asked));
  return before.hits / before.asked - now.hits / now.asked >= deviationsLeast * deviation;
}

type Sum = { readonly hits: number; readonly asked: number; readonly passed: number };

/** `asked`: what came to the cache; who is blocked, refused by a limit or redirected never gets so far. */
function sumOf(series: Series): Sum {
  const sum = { hits: 0, asked: 0, passed: 0 };
  for (const { requests, hits, counts = {} } of series) {
    sum.hits += hits;
    sum.asked += requests - (counts["blocked"] ?? 0) - (counts["none"] ?? 0);
    sum.passed += counts["pass"] ?? 0;
  }
  return sum;
}

const failuresLeast = 10;
const failingLeast = 0.05;

/** Says that many requests fail. `series` is by `status` and by the hour: the hour that goes on counts, and the one before. */
export function failingOf(series: Series): string | undefined {
  const [last, newest] = [series.at(-2), series.at(-1)];
  const hours = [last, newest].filter((hour) => hour !== undefined);
  const failed = hours.reduce((sum, { counts }) => sum + countInClass(counts, "5"), 0);
  const requests = hours.reduce((sum, hour) => sum + hour.requests, 0);
  if (failed < failuresLeast || failed < requests * failingLeast) return undefined;
  return `${percent(failed, requests)} of the requests of this hour and the one before failed (5xx)`;
}
