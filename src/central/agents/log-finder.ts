// Searches request logs for the API: as many steps of bounded work as one question may take, each a turn of the reading
// thread, which serves others between them.

import { AccelError } from "../../core/faults.ts";
import type { LogEngine } from "./log-engine.ts";
import {
  formatArrival,
  formatSearchPlace,
  parseArrival,
  parsePosition,
  parseSearchPlace,
} from "./log-position.ts";
import type { SearchRequest, SearchStep } from "./log-search.ts";

export type FindQuery = Pick<
  SearchRequest,
  "siteIds" | "domain" | "filter" | "since" | "until" | "limit"
> & {
  /** Cursors of an earlier answer; at most one is there. */
  readonly after: string | undefined;
  readonly follow: string | undefined;
  /** A request_id: that one alone is wanted. */
  readonly only: string | undefined;
  readonly nowMs: number;
};

export type FoundRequests = {
  /** JSON texts of `RequestEntry` (`wire/customer/requests.ts`). */
  readonly entries: readonly string[];
  /** In seconds since the epoch. */
  readonly scannedUntil: number;
  readonly follow: string;
  /** Where the question goes on, if not all was looked at. */
  readonly next: { readonly name: "after" | "follow"; readonly cursor: string } | undefined;
};

/** What one question may look at, and how long it may keep the reading thread in all. */
export const findRowsMax = 200_000;
const findMs = 300;
/** The most characters of one answer, give or take those of a step. */
const findCharsMax = 4 * 2 ** 20;
/** What one turn may take. */
const stepMs = 25;

type Bounds = { readonly rowsMax: number; readonly ms: number };

/**
 * Answers one question. Throws NOT_FOUND for a cursor that is none, and LOGS_UNAVAILABLE while too much waits. Ends
 * with what it has when `gone` aborts.
 */
export async function findRequests(
  thread: Pick<LogEngine, "search">,
  query: FindQuery,
  gone: AbortSignal,
  bounds: Bounds = { rowsMax: findRowsMax, ms: findMs },
): Promise<FoundRequests> {
  const { siteIds, domain, filter, since, until, limit } = query;
  const only = known(query.only, parsePosition);
  let after = known(query.after, parseSearchPlace);
  let follow = known(query.follow, parseArrival);
  const isFollowing = follow !== undefined;
  const entries: string[] = [];
  let [looked, chars, oldestUs] = [0, 0, Infinity];
  for (const ends = performance.now() + bounds.ms; ;) {
    const step: SearchStep = await thread.search({
      siteIds,
      domain,
      filter,
      since,
      until,
      after,
      follow,
      only,
      limit: limit - entries.length,
      rowsMax: bounds.rowsMax - looked,
      msMax: stepMs,
    });
    entries.push(...step.entries);
    looked += step.looked;
    for (const entry of step.entries) chars += entry.length;
    oldestUs = Math.min(oldestUs, step.oldestUs ?? Infinity);
    after = step.after;
    if (isFollowing) follow = step.follow;
    const isEnough = entries.length >= limit || looked >= bounds.rowsMax || chars >= findCharsMax;
    if (!step.isAll && !isEnough && performance.now() < ends && !gone.aborted) continue;
    const cursor = formatArrival(step.follow);
    const lookedTo = isFollowing ? Math.min(oldestUs / 1e6, query.nowMs / 1e3) : oldestUs / 1e6;
    return {
      entries,
      scannedUntil: step.isAll && !isFollowing ? (since ?? 0) : lookedTo,
      follow: cursor,
      next: step.isAll
        ? undefined
        : after === undefined
          ? { name: "follow", cursor }
          : { name: "after", cursor: formatSearchPlace(after) },
    };
  }
}

function known<T>(text: string | undefined, parse: (text: string) => T | undefined): T | undefined {
  if (text === undefined) return undefined;
  const place = parse(text);
  if (place === undefined) throw new AccelError("NOT_FOUND", "there is no such cursor");
  return place;
}

export type RecordQuery = {
  readonly siteIds: readonly number[];
  readonly domain: string;
  readonly requestId: string;
};

/** Returns the JSON text of a `RequestDetail`; undefined if there is no such request. */
export async function findRequest(
  thread: Pick<LogEngine, "record">,
  { siteIds, domain, requestId }: RecordQuery,
): Promise<string | undefined> {
  const place = parsePosition(requestId);
  return place === undefined ? undefined : thread.record({ siteIds, domain, place });
}
