// What is counted of every request: how it was answered, and what the verdict was. `domain` is as in worker-metrics.ts.

import { createTallies, type Registry, type Tallies } from "../../../base/metrics.ts";
import type { CounterCell, HistogramCell } from "../../../base/tallies.ts";
import { isFromCache } from "../../../core/analytics/request-counts.ts";
import type { LimitVerdict } from "../../../core/limits/limit-verdict.ts";
import type { Verdict } from "../../../core/serving/verdict.ts";
import type { VisitorSums } from "./visitor-sums.ts";

export const requestMetrics = {
  accel_agent_requests_total: {
    kind: "counter",
    help: "Requests answered.",
    labels: ["domain", "cache", "status"],
  },
  accel_agent_request_duration_seconds: {
    kind: "histogram",
    help: "Time from the head of a request to the last byte of its answer. Upgrades that were switched (101) are not among them.",
    labels: ["domain"],
  },
  accel_agent_bytes_sent_total: {
    kind: "counter",
    help: "Bytes sent to visitors, heads included.",
    labels: ["domain"],
  },
  accel_agent_allowed_total: {
    kind: "counter",
    help: "Requests that the verdict on bots allowed, by reason; those that limits.requests refused afterwards (429) are among them.",
    labels: ["domain", "reason"],
  },
  accel_agent_blocked_total: {
    kind: "counter",
    help: "Requests blocked, by the reason of the verdict.",
    labels: ["domain", "reason"],
  },
  accel_agent_would_block_total: {
    kind: "counter",
    help: "Requests let through only because the domain is in monitor mode.",
    labels: ["domain", "reason"],
  },
  accel_agent_limited_total: {
    kind: "counter",
    help: "Requests that were too many by a rule of limits.requests: enforce (answered 429), monitor (let through, because all rules that were against them are in monitor mode).",
    labels: ["domain", "mode"],
  },
  accel_agent_limit_uncounted_total: {
    kind: "counter",
    help: "Requests that a rule of limits.requests let through uncounted, because its table had no room for their address.",
    labels: ["domain"],
  },
} as const;

/** An answer as its record has it. */
export type AnsweredRequest = {
  readonly domain: string;
  readonly cache: string;
  readonly status: number;
  readonly durationS: number;
  readonly bytesSent: number;
};

/** The series of one domain that were counted on. */
type DomainCells = {
  /** By use of the cache, then by class of status. */
  readonly requests: Map<string, (CounterCell | undefined)[]>;
  readonly verdicts: Map<string, Map<string, CounterCell>>;
  readonly duration: HistogramCell;
  readonly bytes: CounterCell;
  /** By mode, when there were any. */
  readonly limited: Map<string, CounterCell>;
};

export class RequestTally {
  readonly #tallies: Tallies<typeof requestMetrics>;
  /** Of domains that are linked, or were. */
  readonly #domains = new Map<string, DomainCells>();

  constructor(registry: Registry) {
    this.#tallies = createTallies(requestMetrics, registry);
  }

  answered({ domain, cache, status, durationS, bytesSent }: AnsweredRequest): void {
    const tallies = this.#tallies;
    const cells = this.#of(domain);
    let requests = cells.requests.get(cache);
    if (requests === undefined) cells.requests.set(cache, (requests = []));
    const statusClass = Math.floor(status / 100);
    requests[statusClass] ??= tallies.accel_agent_requests_total.cell(
      domain,
      cache,
      `${statusClass}xx`,
    );
    requests[statusClass].value++;
    cells.bytes.value += bytesSent;
    // How long somebody stays connected says nothing of how fast requests are answered.
    if (status !== 101)
      tallies.accel_agent_request_duration_seconds.observe(cells.duration, durationS);
  }

  judged(domain: string, { kind, reason }: Pick<Verdict, "kind" | "reason">): void {
    const { verdicts } = this.#of(domain);
    let cells = verdicts.get(kind);
    if (cells === undefined) verdicts.set(kind, (cells = new Map()));
    let cell = cells.get(reason);
    if (cell === undefined) cells.set(reason, (cell = this.#countOf(kind).cell(domain, reason)));
    cell.value++;
  }

  limited(domain: string, kind: LimitVerdict["kind"]): void {
    const { limited } = this.#of(domain);
    let cell = limited.get(kind);
    if (cell === undefined) {
      const mode = kind === "limit" ? "enforce" : "monitor";
      limited.set(kind, (cell = this.#tallies.accel_agent_limited_total.cell(domain, mode)));
    }
    cell.value++;
  }

  /** A rule had no room to count a request. */
  uncounted(domain: string): void {
    this.#tallies.accel_agent_limit_uncounted_total.cell(domain).value++;
  }

  /** Adds up over all domains. */
  sums(): Pick<VisitorSums, "requests" | "hits" | "blocked"> {
    let [requests, hits, blocked] = [0, 0, 0];
    for (const { requests: byUse, verdicts } of this.#domains.values()) {
      for (const [cache, cells] of byUse) {
        const answered = cells.reduce((sum, cell) => sum + (cell?.value ?? 0), 0);
        requests += answered;
        if (isFromCache(cache)) hits += answered;
      }
      for (const { value } of verdicts.get("block")?.values() ?? []) blocked += value;
    }
    return { requests, hits, blocked };
  }

  #countOf(kind: Verdict["kind"]) {
    switch (kind) {
      case "allow":
        return this.#tallies.accel_agent_allowed_total;
      case "block":
        return this.#tallies.accel_agent_blocked_total;
      case "would-block":
        return this.#tallies.accel_agent_would_block_total;
      default:
        return kind satisfies never;
    }
  }

  #of(domain: string): DomainCells {
    const known = this.#domains.get(domain);
    if (known !== undefined) return known;
    const made = {
      requests: new Map(),
      verdicts: new Map(),
      duration: this.#tallies.accel_agent_request_duration_seconds.cell(domain),
      bytes: this.#tallies.accel_agent_bytes_sent_total.cell(domain),
      limited: new Map(),
    };
    this.#domains.set(domain, made);
    return made;
  }
}
