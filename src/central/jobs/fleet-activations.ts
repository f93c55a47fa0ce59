// Steps activations on all or none (store/content/fleet-activations.ts): at each receipt while one is under way, and
// each second, for deadlines and losses and what another process left.

import type { Log } from "../../base/log.ts";
import { repeating, sleep } from "../../base/wait.ts";
import type { FleetStepped } from "../store/content/fleet-activations.ts";

export type FleetActivationsDeps = {
  /** Whether any is under way. */
  readonly areAny: () => Promise<boolean>;
  /** Takes the next step of each in one transaction and wakes the agents that are told of it. */
  readonly step: () => Promise<readonly FleetStepped[]>;
  /** Resolves when a receipt was stored after the call, or the signal aborted. */
  readonly nextReceipt: (signal: AbortSignal) => Promise<void>;
  /** Called after one was decided or given up: somebody may wait for it. */
  readonly onEnded: () => void;
  readonly log: Log;
  readonly intervalMs?: number;
};

/** The least time between two steps, however many receipts arrive. */
const leastMs = 50;

/** Starts the job. Disposing waits for the step under way. */
export function startFleetActivations(deps: FleetActivationsDeps): AsyncDisposable {
  const { areAny, step, nextReceipt, onEnded, log, intervalMs = 1_000 } = deps;
  const tell = (stepped: readonly FleetStepped[]): void => {
    const ended = stepped.filter(({ outcome }) => outcome !== "waiting");
    for (const { id, ...one } of ended) {
      const facts = { activation_id: id, ...one };
      if (one.outcome === "activated") log.info(facts, "a version was activated on all instances");
      else log.warn(facts, texts[one.outcome] ?? "");
    }
    if (ended.length > 0) onEnded();
  };
  const look = async (stop: AbortSignal): Promise<void> => {
    while (!stop.aborted && (await areAny())) {
      // Asked for before the step, so that a receipt in between is not missed.
      const receipt = nextReceipt(AbortSignal.any([stop, AbortSignal.timeout(intervalMs)]));
      tell(await step());
      await sleep(leastMs, stop);
      await receipt;
    }
  };
  const onError = (error: unknown): void =>
    log.error({ err: error }, "activations on all instances could not be stepped");
  return repeating(intervalMs, look, { onError });
}

const texts: Partial<Record<FleetStepped["outcome"], string>> = {
  aborted: "the activation on all instances was given up: nothing has changed",
  returned:
    "a version that was activated on all instances failed its trial: all go back to the one before",
  stays: "a version that was activated on all instances failed its trial and stays",
};
