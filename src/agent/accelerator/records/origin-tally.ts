// What is counted of every request that goes to an origin. `domain` is as in worker-metrics.ts.

import { createTallies, type Registry, type Tallies } from "../../../base/metrics.ts";
import type { CounterCell, HistogramCell } from "../../../base/tallies.ts";
import type { VisitorSums } from "./visitor-sums.ts";

export const askedOriginMetrics = {
  accel_agent_origin_requests_total: {
    kind: "counter",
    help: "Requests that were sent to an origin, and that it answered, or failed to answer before the visitor left.",
    labels: ["domain"],
  },
  accel_agent_origin_duration_seconds: {
    kind: "histogram",
    help: "Time from asking the origin to the head of its answer, repetitions included.",
    labels: ["domain"],
  },
  accel_agent_cache_passed_total: {
    kind: "counter",
    help: "Requests that were passed on without the cache, because of their method, a pause of the cache (paused), a rule (bypass), a cookie that the rule names in `cookies.bypass` (bypass_cookie), a cookie that the rule does not ignore (cookie), or something else in the request (request).",
    labels: ["domain", "reason"],
  },
} as const;

/** The series of one domain that were counted on, made when they are first needed. */
type DomainCells = {
  requests: CounterCell | undefined;
  duration: HistogramCell | undefined;
  /** By reason. */
  readonly passed: Map<string, CounterCell>;
};

export class OriginTally {
  readonly #tallies: Tallies<typeof askedOriginMetrics>;
  /** Of domains that are linked, or were. */
  readonly #domains = new Map<string, DomainCells>();

  constructor(registry: Registry) {
    this.#tallies = createTallies(askedOriginMetrics, registry);
  }

  asked(domain: string): void {
    const cells = this.#of(domain);
    cells.requests ??= this.#tallies.accel_agent_origin_requests_total.cell(domain);
    cells.requests.value++;
  }

  /** Notes the seconds that it took. */
  took(domain: string, durationS: number): void {
    const { accel_agent_origin_duration_seconds: histogram } = this.#tallies;
    const cells = this.#of(domain);
    cells.duration ??= histogram.cell(domain);
    histogram.observe(cells.duration, durationS);
  }

  passed(domain: string, reason: string): void {
    const { passed } = this.#of(domain);
    let cell = passed.get(reason);
    if (cell === undefined) {
      cell = this.#tallies.accel_agent_cache_passed_total.cell(domain, reason);
      passed.set(reason, cell);
    }
    cell.value++;
  }

  /** Adds up over all domains. */
  sums(): Pick<VisitorSums, "originWaits" | "originWaitS"> {
    let [originWaits, originWaitS] = [0, 0];
    for (const { duration } of this.#domains.values()) {
      if (duration === undefined) continue;
      for (const count of duration.counts) originWaits += count;
      originWaitS += duration.sum;
    }
    return { originWaits, originWaitS };
  }

  #of(domain: string): DomainCells {
    let cells = this.#domains.get(domain);
    if (cells === undefined) {
      cells = { requests: undefined, duration: undefined, passed: new Map() };
      this.#domains.set(domain, cells);
    }
    return cells;
  }
}
