// A share of the worker for each backend: so many requests with it, so many that wait for one of those to end, for a few seconds. Whoever finds both full is told
// at once to come again: one slow site takes neither connections nor memory from the others.
//
// A backend is one main domain's list of URLs; each worker counts for itself.

import type { StopSignal } from "../../../base/stop.ts";
import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";

export type OriginShareLimits = {
  /** The most requests that a backend has at a time. */
  readonly requestsMax: number;
  /** The most that wait beside them. */
  readonly waitingMax: number;
};

export type OriginSharesDeps = {
  readonly limits: OriginShareLimits;
  readonly metrics: WorkerMetrics;
  /** The time that a request may wait; 5 s unless told: a visitor comes again sooner than that. */
  readonly waitMs?: number | undefined;
};

/** Gives the place back; what is called again has no effect. */
export type Leave = () => void;

type Share = { inFlight: number; readonly waiting: Set<(admission: "entered" | "full") => void> };

const waitMsDefault = 5_000;

export class OriginShares {
  readonly #deps: OriginSharesDeps;
  readonly #shares = new Map<string, Share>();

  constructor(deps: OriginSharesDeps) {
    this.#deps = deps;
  }

  /** Takes a place at a backend. `full`: there is none, and there was none in time. `stop` ends the wait. Never throws. */
  enter(
    domain: string,
    { urls }: Pick<BackendSettings, "urls">,
    stop: StopSignal,
  ): Leave | "full" | Promise<Leave | "full"> {
    const key = `${domain} ${urls.join(" ")}`;
    let share = this.#shares.get(key);
    if (share === undefined) this.#shares.set(key, (share = { inFlight: 0, waiting: new Set() }));
    const { limits, metrics } = this.#deps;
    if (share.inFlight < limits.requestsMax) {
      share.inFlight++;
      return this.#leaveOnce(key, share);
    }
    if (share.waiting.size < limits.waitingMax && !stop.aborted)
      return this.#wait({ key, share, domain, stop });
    metrics.accel_agent_origin_full_total.inc({ domain, outcome: "refused" });
    return "full";
  }

  async #wait(asked: {
    readonly key: string;
    readonly share: Share;
    readonly domain: string;
    readonly stop: StopSignal;
  }): Promise<Leave | "full"> {
    const { key, share, domain, stop } = asked;
    const { metrics, waitMs = waitMsDefault } = this.#deps;
    const { promise, resolve } = Promise.withResolvers<"entered" | "full">();
    const giveUp = (): void => {
      share.waiting.delete(resolve);
      resolve("full");
    };
    const late = setTimeout(giveUp, waitMs);
    stop.addEventListener("abort", giveUp);
    share.waiting.add(resolve);
    const admission = await promise;
    clearTimeout(late);
    stop.removeEventListener("abort", giveUp);
    const outcome = admission === "entered" ? "waited" : stop.aborted ? "left" : "late";
    metrics.accel_agent_origin_full_total.inc({ domain, outcome });
    return admission === "entered" ? this.#leaveOnce(key, share) : "full";
  }

  #leaveOnce(key: string, share: Share): Leave {
    let isHere = true;
    return () => {
      if (!isHere) return;
      isHere = false;
      const [next] = share.waiting;
      if (next === undefined) share.inFlight--;
      else {
        // The place goes on to whoever has waited longest.
        share.waiting.delete(next);
        next("entered");
      }
      if (share.inFlight === 0) this.#shares.delete(key);
    };
  }
}
