// Whether the cache answers much less than it did, or many requests fail: what a customer should hear of before anybody calls. Pure.

import type { Analytics } from "../wire/customer/analytics.ts";
import { countInClass } from "./status-class.ts";
import { percent } from "./words.ts";

type Totals = Pick<Analytics["totals"], "requests" | "hits" | "counts">;

/** Fewer requests say nothing. */
const requestsLeast = 50;
/** A cache that answers less than this is no great help anyway. */
const usualLeast = 0.3;

/**
 * Says that the cache answers less than half as often as before. Both totals are by `cache`; `day` has the recent time in it. Undefined: it does not, or too little was asked.
 */
export function fallOf(day: Totals, recent: Totals, minutes: number): string | undefined {
  const before = {
    hits: day.hits - recent.hits,
    asked: askedOf(day) - askedOf(recent),
  };
  const now = { hits: recent.hits, asked: askedOf(recent) };
  if (before.asked < requestsLeast || now.asked < requestsLeast) return undefined;
  const [usual, share] = [before.hits / before.asked, now.hits / now.asked];
  if (usual < usualLeast || share >= usual / 2) return undefined;
  const passed = recent.counts?.["pass"] ?? 0;
  const because =
    passed > now.asked / 2
      ? `; ${percent(passed, now.asked)} were not to be stored: a rule, or the backend, forbids it`
      : "";
  return `the cache answered ${percent(now.hits, now.asked)} of the last ${minutes} minutes, and ${percent(before.hits, before.asked)} before${because}`;
}

const failuresLeast = 10;
const failingLeast = 0.05;

/** Says that many requests fail. `series` is by `status` and by the hour: the hour that goes on counts, and the one before. */
export function failingOf(series: Analytics["series"]): string | undefined {
  const [last, newest] = [series.at(-2), series.at(-1)];
  const hours = [last, newest].filter((hour) => hour !== undefined);
  const failed = hours.reduce((sum, { counts }) => sum + countInClass(counts, "5"), 0);
  const requests = hours.reduce((sum, hour) => sum + hour.requests, 0);
  if (failed < failuresLeast || failed < requests * failingLeast) return undefined;
  return `${percent(failed, requests)} of the requests of this hour and the one before failed (5xx)`;
}

/** Requests that the cache could have answered: who is blocked never gets so far. */
function askedOf({ requests, counts = {} }: Totals): number {
  return requests - (counts["blocked"] ?? 0);
}
