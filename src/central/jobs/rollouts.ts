// Takes the next step of each rollout, every second, and warns of those that went back or wait for somebody.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { repeatingFromNow } from "../../base/wait.ts";
import type { Store } from "../store/engine/database.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import { recordAudit } from "../store/people/audit.ts";
import {
  endRestored,
  newestRollouts,
  steppedIds,
  takeStep,
  type NewestRollout,
  type Stepped,
} from "../store/rollouts/rollouts.ts";

export type RolloutsDeps = {
  readonly store: Store;
  readonly customers: Transactions;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly now: () => Date;
  readonly log: Log;
  readonly intervalMs?: number;
  /** Whether this central takes the steps now, and not another at the store; all warn. Always, if absent. */
  readonly isOurs?: () => boolean;
};

/** Starts the job. Disposing waits for the step under way. */
export function startRollouts(deps: RolloutsDeps): AsyncDisposable {
  const { store, customers, now, log, intervalMs = 1_000, isOurs = always } = deps;
  const upSinceMs = now().getTime();
  const warn = createWarnings(deps);
  let hasBegun = false;
  const takeSteps = async (stop: AbortSignal): Promise<void> => {
    if (!hasBegun) {
      const ended = await customers.transact(endRestored);
      if (ended.length > 0) log.warn({ ended }, "rollouts of before the restore are over");
      hasBegun = true;
    }
    for (const id of await steppedIds(store)) {
      if (stop.aborted) return;
      await step(deps, id, upSinceMs);
    }
  };
  const run = async (stop: AbortSignal): Promise<void> => {
    if (isOurs()) await takeSteps(stop);
    warn(await newestRollouts(store));
  };
  const onError = (error: unknown): void =>
    log.error({ err: error }, "the next steps of rollouts could not be taken");
  return repeatingFromNow(intervalMs, run, { onError });
}

const always = (): boolean => true;

async function step({ customers, log }: RolloutsDeps, id: number, upSinceMs: number) {
  const { before, after } = await customers.transact(async (work) => {
    const stepped = await takeStep(work, id, upSinceMs);
    if (stepped.before.rollout.state !== stepped.after.state)
      await recordAudit(work, {
        via: "central",
        who: "central",
        user_id: null,
        customer_id: stepped.before.customerId,
        action: `rollout ${stepped.after.state}`,
        ids: { rollout_id: id },
        change: { release: stepped.after.release, reason: stepped.after.reason },
        address: null,
        request_id: null,
      });
    return stepped;
  });
  tellMembers(log, id, { before, after });
  if (before.rollout.state === after.state) return;
  const facts = { rollout: id, release: after.release, state: after.state, reason: after.reason };
  if (after.state === "done") log.info(facts, "rollout");
  else log.warn(facts, "rollout");
}

function tellMembers(log: Log, rollout: number, { before, after }: Stepped): void {
  for (const [at, { key, state, reason }] of after.members.entries())
    if (state !== before.rollout.members[at]?.state)
      log.info({ rollout, host: key, state, reason }, "host of a rollout");
}

/** Returns what keeps the warnings as the newest rollout of each customer is. */
function createWarnings({
  health,
}: Pick<RolloutsDeps, "health">): (newest: readonly NewestRollout[]) => void {
  const codes = ["rollout_returned", "rollout_paused", "rollout_stuck"] as const;
  let raised = new Set<string>();
  return (newest) => {
    const now = new Set<string>();
    const raise = (code: (typeof codes)[number], id: number, text: string, hint: string): void => {
      now.add(`${code} ${id}`);
      health.raise(code, "warning", text, hint, String(id));
    };
    for (const { id, release, state, reason, stuck } of newest) {
      const look = `accel-central rollout status ${id}`;
      const why = reason === null ? "" : `: ${reason}`;
      if (state === "returning" || state === "returned")
        raise("rollout_returned", id, `rollout ${id} of ${release} went back${why}`, look);
      if (state === "paused")
        raise("rollout_paused", id, `rollout ${id} of ${release} waits${why}`, look);
      if (stuck > 0)
        raise("rollout_stuck", id, `${stuck} hosts of rollout ${id} did not go back`, look);
    }
    for (const one of raised) {
      if (now.has(one)) continue;
      const [code, id] = one.split(" ");
      const known = codes.find((name) => name === code);
      if (known !== undefined) health.settle(known, id);
    }
    raised = now;
  };
}
