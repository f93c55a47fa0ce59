// How old the newest canary of each deployment site is. An agent sends one a minute through the whole way of
// request records.

import type { LogEngine } from "./log-engine.ts";
import type { AgentMetrics } from "./metrics.ts";

export type CanaryAgesDeps = {
  readonly thread: LogEngine;
  readonly metrics: AgentMetrics;
  /** Returns the names of the deployment sites that exist, by id. */
  readonly names: () => Promise<ReadonlyMap<number, string>>;
  readonly now: () => Date;
};

/** The longest time that a scrape waits for the reading thread. */
const timeoutMs = 2_000;

/** Returns seconds by the id of the deployment site; none for sites that never sent a canary. */
export async function canaryAges(thread: LogEngine, now: Date): Promise<Map<number, number>> {
  const seen = await thread.canaries(timeoutMs);
  return new Map(
    seen.map(({ siteId, atUs }) => [siteId, Math.max(0, now.getTime() / 1_000 - atUs / 1e6)]),
  );
}

/**
 * Creates the ages, which run before metrics are told. Sites that are gone go. When the thread does not
 * answer, no age is told.
 */
export function createCanaryAges({ thread, metrics, names, now }: CanaryAgesDeps) {
  return async (): Promise<void> => {
    const gauge = metrics.accel_central_log_canary_age_seconds;
    const ages = await canaryAges(thread, now()).catch(() => new Map<number, number>());
    const known = ages.size === 0 ? new Map<number, string>() : await names();
    gauge.reset();
    for (const [siteId, age] of ages) {
      const deployment = known.get(siteId);
      if (deployment !== undefined) gauge.set({ deployment }, age);
    }
  };
}
