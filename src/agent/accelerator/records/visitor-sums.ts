// The sums over all domains of what a worker counts for visitors, as a few numbers. They are the counters that Prometheus gets, added up where they are, so that
// whoever wants the sums alone need not have every series copied between threads.

export type VisitorSums = {
  readonly requests: number;
  /** Requests answered from the cache, fresh or stale. */
  readonly hits: number;
  readonly blocked: number;
  /** Times that an origin's head of an answer was waited for. */
  readonly originWaits: number;
  /** The seconds of all of these. */
  readonly originWaitS: number;
};

export const noVisitors: VisitorSums = {
  requests: 0,
  hits: 0,
  blocked: 0,
  originWaits: 0,
  originWaitS: 0,
};

export function addSums(all: readonly VisitorSums[]): VisitorSums {
  return all.reduce(
    (sum, one) => ({
      requests: sum.requests + one.requests,
      hits: sum.hits + one.hits,
      blocked: sum.blocked + one.blocked,
      originWaits: sum.originWaits + one.originWaits,
      originWaitS: sum.originWaitS + one.originWaitS,
    }),
    noVisitors,
  );
}
