// How old the newest canary of each deployment site is. An agent sends one a minute through the whole way of
// request records.

import { within } from "../../base/wait.ts";
import type { LogEngine } from "./log-engine.ts";
import type { AgentMetrics } from "./metrics.ts";

export type CanaryAgesDeps = {
  readonly thread: Pick<LogEngine, "canaries">;
  readonly metrics: Pick<
    AgentMetrics,
    "accel_central_log_canary_age_seconds" | "accel_central_scrape_missing"
  >;
  /** Returns the names of the deployment sites that exist, by id. */
  readonly names: () => Promise<ReadonlyMap<number, string>>;
  readonly now: () => Date;
  /** Called when the names could not be read; must not throw. */
  readonly onError: (error: unknown) => void;
};

/** The longest time that a scrape waits: for the reading thread, and for the store beside it. Prometheus waits for 10 s. */
const timeoutMs = 1_500;

/** Returns seconds by the id of the deployment site; none for sites that never sent a canary. */
export async function canaryAges(
  thread: Pick<LogEngine, "canaries">,
  now: Date,
): Promise<Map<number, number>> {
  const seen = await thread.canaries(timeoutMs);
  return new Map(
    seen.map(({ siteId, atUs }) => [siteId, Math.max(0, now.getTime() / 1_000 - atUs / 1e6)]),
  );
}

/**
 * Creates the ages, which run before metrics are told. Sites that are gone go. When the thread or the store does not
 * answer in time, no age is told, and which of them it was.
 */
export function createCanaryAges({ thread, metrics, names, now, onError }: CanaryAgesDeps) {
  const ask = oneAtATime(names, onError);
  return async (): Promise<void> => {
    const [ages, known] = await Promise.all([
      canaryAges(thread, now()).catch(() => undefined),
      inTime(ask()),
    ]);
    const missing = metrics.accel_central_scrape_missing;
    missing.set({ of: "logs" }, ages === undefined ? 1 : 0);
    missing.set({ of: "store" }, known === undefined ? 1 : 0);
    const gauge = metrics.accel_central_log_canary_age_seconds;
    gauge.reset();
    for (const [siteId, age] of ages ?? []) {
      const deployment = known?.get(siteId);
      if (deployment !== undefined) gauge.set({ deployment }, age);
    }
  };
}

/** Returns what asks: a question that waits for a store that is silent is waited for by all scrapes, and no second one is asked beside it. Undefined: it failed. */
function oneAtATime<T>(
  question: () => Promise<T>,
  onError: (error: unknown) => void,
): () => Promise<T | undefined> {
  let asked: Promise<T | undefined> | undefined;
  const failed = (error: unknown): undefined => {
    onError(error);
    return undefined;
  };
  return async () =>
    (asked ??= question()
      .catch(failed)
      .finally(() => (asked = undefined)));
}

/** Undefined where there is no answer in time. */
async function inTime<T>(asked: Promise<T>): Promise<T | undefined> {
  let answer: T | undefined;
  await within(
    asked.then((given) => (answer = given)),
    timeoutMs,
  );
  return answer;
}
