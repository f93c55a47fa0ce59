// Folds what batches of request records were counted as into the numbers of the API: at the start, then once a minute; sooner where that failed.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import { repeatingFromNow } from "../../base/wait.ts";
import { AccelError, messageOf } from "../../core/faults.ts";

export const analyticsMetrics = {
  accel_central_analytics_bytes: {
    kind: "gauge",
    help: "Bytes of the numbers of requests (analytics.db) that are in use; analytics.max bounds them.",
  },
  accel_central_analytics_failing: {
    kind: "gauge",
    help: "1 while numbers of requests cannot be kept: disk full or broken. Days of request logs stay until they can.",
  },
} as const;

export type AnalyticsFoldDeps = {
  readonly fold: (now: Date, stop: AbortSignal) => Promise<void>;
  readonly bytes: () => Promise<number>;
  readonly now: () => Date;
  readonly log: Log;
  readonly health: Health;
  readonly registry: Registry;
  readonly intervalMs?: number;
  /** Until a fold that failed is tried again. */
  readonly retryMs?: number;
};

/** Starts the job. Disposing ends the run under way after its current piece. */
export function startAnalyticsFold(deps: AnalyticsFoldDeps): AsyncDisposable {
  const { fold, bytes, now, log, health, registry } = deps;
  const { intervalMs = 60_000, retryMs = 10_000 } = deps;
  const metrics = createMetrics(analyticsMetrics, registry);
  let dueMs = -Infinity;
  const run = async (stop: AbortSignal): Promise<void> => {
    if (performance.now() < dueMs) return;
    await fold(now(), stop);
    dueMs = performance.now() + intervalMs - retryMs / 2; // The look that is nearest to it.
    metrics.accel_central_analytics_bytes.set(await bytes());
    metrics.accel_central_analytics_failing.set(0);
    health.settle("analytics_not_kept");
  };
  const onError = (error: unknown): void => {
    log.error({ err: error }, "numbers of requests are not kept; it is tried again in a moment");
    metrics.accel_central_analytics_failing.set(1);
    health.raise(
      "analytics_not_kept",
      "error",
      `numbers of requests cannot be kept: ${messageOf(error)}`,
      `${error instanceof AccelError ? error.hint : "Make room on central's disk, or repair it."} Meanwhile no day of request logs is removed.`,
    );
  };
  return repeatingFromNow(retryMs, run, { onError });
}
