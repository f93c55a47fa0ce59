// Warns for a week of a store that lost what had been acknowledged: at the start, then once a minute.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { repeatingFromNow } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import type { Store } from "../store/engine/database.ts";
import { lastRestore } from "../store/engine/restores.ts";

const warnedForMs = 7 * 86_400_000;

export type LossWarningDeps = {
  readonly store: Store;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly now: () => Date;
  readonly log: Log;
  readonly intervalMs?: number;
};

/** Starts the job. Disposing waits for the look under way. */
export function startLossWarning(deps: LossWarningDeps): AsyncDisposable {
  const { store, health, now, log, intervalMs = 60_000 } = deps;
  const run = async (): Promise<void> => {
    const last = await lastRestore(store);
    const isWarned =
      last?.cause === "failover" && now().getTime() - Date.parse(last.when_restored) < warnedForMs;
    if (!isWarned) return health.settle("store_lost_commits");
    health.raise(
      "store_lost_commits",
      "error",
      `${last.detail ?? "the store lost what had been acknowledged"}. It was found at ${last.when_restored}`,
      "Tell the customers to look at what they changed between these times. docs/operations/cluster.md says what else to look at.",
    );
  };
  // While the store is away, other warnings say so.
  const onError = (error: unknown): void =>
    log.debug({ reason: messageOf(error) }, "it is not known whether the store lost anything");
  return repeatingFromNow(intervalMs, run, { onError });
}
