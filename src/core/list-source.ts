// A list that is fetched from a URL: when it is asked for again, and when it has not come for too long.

/** How often a list may be fetched, in seconds. */
export const fetchIntervalS = { least: 900, most: 30 * 86_400, usual: 86_400 } as const;

const firstRetryMs = 60_000;
const lastRetryMs = 3_600_000;
/** A tenth of the interval: lists of many customers lie on few servers. */
const jitter = 0.1;
/** A list is stale after so many intervals without it, and not before some hours: servers have their nights. */
const staleIntervals = 3;
const staleMsLeast = 6 * 3_600_000;

/**
 * Returns the milliseconds until the next attempt, after `failures` in a row: minutes at first, at most an hour and never more than the interval. Infinity: the list
 * came and was refused, so it is fetched again after an hour. `random` is in [0, 1); `leastMs` is what the server asks for.
 */
export function nextFetchMs(
  intervalS: number,
  failures: number,
  random: number,
  leastMs = 0,
): number {
  const intervalMs = intervalS * 1_000;
  const retryMs = Math.min(lastRetryMs, firstRetryMs * 2 ** Math.min(failures - 1, 10));
  const waitMs = failures === 0 ? intervalMs : Math.min(intervalMs, retryMs);
  const asked = Math.min(leastMs, intervalMs);
  return Math.round(Math.max(waitMs, asked) * (1 + jitter * random));
}

/** Returns when a list becomes stale that came last at a time, in milliseconds since the epoch. */
export function staleFromMs(lastMs: number, intervalS: number): number {
  return lastMs + Math.max(staleMsLeast, staleIntervals * intervalS * 1_000);
}
