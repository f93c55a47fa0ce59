// Looks once a second over the connections of a lane: heads that are not complete, and connections on which nothing is asked. No timer a request.

import { keepAliveMs } from "../doors/head-text.ts";
import type { WorkerClock } from "../clock.ts";
import type { LaneConnection } from "./lane-connection.ts";

export type SweepDeps = {
  readonly clock: WorkerClock;
  /** The time that a head may take, and a new connection without a byte. */
  readonly headMs: number;
  readonly connections: () => Iterable<LaneConnection>;
  /** The head did not come in time. */
  readonly onLate: (lane: LaneConnection) => void;
  /** The time between two looks; a second unless told. */
  readonly lookMs?: number | undefined;
};

const lookMsDefault = 1_000;
/** After so long without a request a connection rests. */
const restMs = 5_000;
/** Visitors are told a little less: a request that is on its way then still finds the connection open. */
const keepAliveGraceMs = 1_000;

export class LaneSweep implements Disposable {
  readonly #deps: SweepDeps;
  readonly #timer: NodeJS.Timeout;

  constructor(deps: SweepDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => this.#look(), deps.lookMs ?? lookMsDefault).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { clock, headMs, connections, onLate } = this.#deps;
    const now = clock.steadyMs();
    for (const lane of connections()) {
      const { state, sinceMs } = lane;
      if (state === "busy") continue;
      if (now - sinceMs >= restMs) lane.rest();
      const mostMs = state === "idle" ? keepAliveMs + keepAliveGraceMs : headMs;
      if (now - sinceMs < mostMs) continue;
      if (state === "head") onLate(lane);
      else lane.connection.socket.destroy();
    }
  }
}
