// Lanes as operators see them: the balance of each as a metric, and as facts for `status` and `logs backlog`.
// Both are made on request.

import { createMetrics, type Metrics, type Registry } from "../../../base/metrics.ts";
import type { CanaryFacts } from "./canary.ts";
import { totalDropped, type Dropped } from "../spool/gaps.ts";
import type { LaneAnswer, ShipState } from "./ship-progress.ts";
import type { Balance, LaneFacts, SpoolFacts } from "../spool/spool-messages.ts";

export const laneMetrics = {
  accel_agent_log_lane_records: {
    kind: "gauge",
    help: "Request records of each lane that is here (of the sealed ones the 64 oldest), by state: accepted = committed + spooled + in_memory + dropped; beside them unproven and unknown, see accel_agent_log_records_unproven_total and accel_agent_log_records_unknown_total. The series of a lane end with it.",
    labels: ["lane", "state"],
  },
  accel_agent_log_oldest_seconds: {
    kind: "gauge",
    help: "How long the oldest request record that central does not have has been waiting; 0 if there is none.",
  },
  accel_agent_log_shipping_stuck: {
    kind: "gauge",
    help: "1 while there is a backlog and central has committed nothing for a minute, whatever the cause.",
  },
} as const;

export class LaneMetrics {
  readonly #metrics: Metrics<typeof laneMetrics>;

  constructor(registry: Registry) {
    this.#metrics = createMetrics(laneMetrics, registry);
  }

  /** Call before each scrape. A lane that is gone is not exposed any more. */
  refresh({ lanes }: SpoolFacts, state: ShipState): void {
    const records = this.#metrics.accel_agent_log_lane_records;
    records.reset();
    for (const { lane, balance } of lanes)
      for (const [name, count] of Object.entries(states(balance)))
        records.set({ lane, state: name }, count);
    this.#metrics.accel_agent_log_oldest_seconds.set(oldestS(lanes));
    this.#metrics.accel_agent_log_shipping_stuck.set(state === "stuck" ? 1 : 0);
  }
}

function states({ accepted, committed, spooled, inMemory, dropped, unproven, unknown }: Balance) {
  return {
    accepted,
    committed,
    spooled,
    in_memory: inMemory,
    dropped: totalDropped(dropped),
    unproven,
    unknown,
  };
}

function oldestS(lanes: readonly LaneFacts[]): number {
  return Math.max(0, ...lanes.map(({ waitingMs }) => waitingMs)) / 1_000;
}

/** The facts of the log, named as on the wire. */
export type LogFacts = {
  readonly accepted: number;
  readonly committed: number;
  readonly spooled: number;
  readonly in_memory: number;
  readonly dropped: Dropped;
  /** At most so many records more were lost with processes that ended unexpectedly. */
  readonly unproven: number;
  /** So many more are at central as records or as gaps; only central knows which. */
  readonly unknown: number;
  readonly bytes: number;
  readonly oldest_s: number;
  readonly shipping: ShipState;
  /** Since the start where none has arrived; null: none is sent. */
  readonly canary_age_s: number | null;
  /** Null: none has arrived since the start. */
  readonly canary_round_trip_ms: number | null;
  readonly lanes_total: number;
  /** The live lanes, then the oldest of the others. */
  readonly lanes: readonly DescribedLane[];
};

export type DescribedLane = {
  readonly lane: string;
  readonly live: boolean;
  readonly accepted: number;
  readonly committed: number;
  readonly spooled: number;
  readonly in_memory: number;
  readonly dropped: number;
  /** At most so many records more were lost with the lane's process. */
  readonly unproven: number;
  /** So many more are at central as records or as gaps; only central knows which. */
  readonly unknown: number;
  readonly bytes: number;
  readonly oldest_s: number;
  readonly in_flight: boolean;
  /** Central's last answer, followed by its time; null before the first batch. */
  readonly answer: string | null;
  readonly answered_at: string | null;
};

/** Summarizes the facts for a person: each lane becomes one line of text. */
export function summarizeLogs(facts: LogFacts): Readonly<Record<string, unknown>> {
  const lanes = facts.lanes.map((lane) => [lane.lane, laneText(lane)] as const);
  return { ...facts, lanes: Object.fromEntries(lanes) };
}

function laneText(lane: DescribedLane): string {
  const more = lane.unproven > 0 ? `, at most ${lane.unproven} more lost` : "";
  const known = lane.unknown > 0 ? `, ${lane.unknown} that only central knows` : "";
  const sums = `${lane.spooled} spooled, ${lane.in_memory} in memory, ${lane.committed} committed, ${lane.dropped} dropped${more}${known}`;
  const state = `${lane.live ? "live" : "sealed"}${lane.in_flight ? ", in flight" : ""}`;
  return `${state}: ${sums}; ${lane.bytes} bytes, oldest ${lane.oldest_s} s; ${lane.answer ?? "nothing sent"}`;
}

export function describeLogs(
  { balance, bytes, lanesTotal, lanes }: SpoolFacts,
  shipper: { readonly state: ShipState; answer(lane: string): LaneAnswer | undefined },
  canary: CanaryFacts | undefined,
): LogFacts {
  return {
    ...states(balance),
    dropped: balance.dropped,
    bytes,
    oldest_s: Math.round(oldestS(lanes)),
    shipping: shipper.state,
    canary_age_s: canary === undefined ? null : Math.round(canary.ageS),
    canary_round_trip_ms:
      canary?.roundTripS === undefined ? null : Math.round(canary.roundTripS * 1_000),
    lanes_total: lanesTotal,
    lanes: lanes.map((facts) => {
      const answer = shipper.answer(facts.lane);
      return {
        lane: facts.lane,
        live: facts.live,
        ...states(facts.balance),
        bytes: facts.bytes,
        oldest_s: Math.round(facts.waitingMs / 1_000),
        in_flight: facts.inFlight,
        answer: answer === undefined ? null : (answer.why ?? answer.outcome),
        answered_at: answer?.at ?? null,
      };
    }),
  };
}
