// A canary is sent once in each interval and goes the whole way of a record: numbered, spooled, shipped,
// committed, but never shown to a customer. Its age says whether records arrive, even on a host without
// visitors, and whatever part of the way is broken.
//
//   age          time since the newest canary that central has committed was sent; since the start while
//                there is none
//   round trip   of the newest committed one, from sending it to central's answer

import { createMetrics, type Metrics, type Registry } from "../../../base/metrics.ts";
import { sleep } from "../../../base/wait.ts";
import type { LaneWriter } from "../worker/lane-writer.ts";

export type CanaryOptions = {
  /** The canary's own lane. */
  readonly lane: Pick<LaneWriter, "accept" | "close">;
  /** The time between two canaries; 0 means that none is sent. */
  readonly intervalMs: number;
  readonly now: () => Date;
  readonly monotonicMs?: () => number;
  readonly registry: Registry;
};

export type CanaryFacts = {
  readonly ageS: number;
  readonly roundTripS: number | undefined;
};

export const canaryMetrics = {
  accel_agent_log_canary_age_seconds: {
    kind: "gauge",
    help: "Time since the newest canary record that central has committed was sent; while there is none, time since the start of the agent.",
  },
  accel_agent_log_canary_round_trip_seconds: {
    kind: "gauge",
    help: "Time from sending the newest canary record that central has committed until central said so.",
  },
} as const;

/**
 * The most canaries that are sent and not committed: those of three days at an interval of a minute. Of more,
 * the oldest is forgotten.
 */
const awaitedMax = 4_096;

export class Canary implements AsyncDisposable {
  readonly #options: CanaryOptions;
  readonly #metrics: Metrics<typeof canaryMetrics> | undefined;
  readonly #stop = new AbortController();
  readonly #sending: Promise<void>;
  /** The monotonic time of sending by `at`, for wall clocks jump. */
  readonly #awaited = new Map<number, number>();
  readonly #startedMs: number;
  #newestMs: number | undefined;
  #roundTripS: number | undefined;

  constructor(options: CanaryOptions) {
    this.#options = options;
    this.#startedMs = this.#monotonicMs();
    const { intervalMs, registry } = options;
    if (intervalMs === 0) {
      this.#sending = Promise.resolve();
      return;
    }
    this.#metrics = createMetrics(canaryMetrics, registry);
    this.#sending = this.#run(intervalMs);
  }

  /** Notes that central has committed the canary of this time. Canaries of earlier starts are ignored. */
  committed(at: number): void {
    const sentMs = this.#awaited.get(at);
    if (sentMs === undefined || sentMs < (this.#newestMs ?? 0)) return;
    this.#newestMs = sentMs;
    this.#roundTripS = (this.#monotonicMs() - sentMs) / 1_000;
    for (const [earlier, ms] of this.#awaited) if (ms <= sentMs) this.#awaited.delete(earlier);
  }

  facts(): CanaryFacts | undefined {
    if (this.#metrics === undefined) return undefined;
    const ageS = (this.#monotonicMs() - (this.#newestMs ?? this.#startedMs)) / 1_000;
    return { ageS, roundTripS: this.#roundTripS };
  }

  /** Call before each scrape. */
  refresh(): void {
    const facts = this.facts();
    if (facts === undefined) return;
    this.#metrics?.accel_agent_log_canary_age_seconds.set(facts.ageS);
    if (facts.roundTripS !== undefined)
      this.#metrics?.accel_agent_log_canary_round_trip_seconds.set(facts.roundTripS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#sending;
    await this.#options.lane.close();
  }

  async #run(intervalMs: number): Promise<void> {
    for (let waitMs = 0; await sleep(waitMs, this.#stop.signal); waitMs = intervalMs) this.#send();
  }

  #send(): void {
    const at = this.#options.now().getTime() / 1_000;
    const oldest = this.#awaited.size >= awaitedMax ? this.#awaited.keys().next().value : undefined;
    if (oldest !== undefined) this.#awaited.delete(oldest);
    this.#awaited.set(at, this.#monotonicMs());
    this.#options.lane.accept({ canary: { at } });
  }

  #monotonicMs(): number {
    return this.#options.monotonicMs?.() ?? performance.now();
  }
}
