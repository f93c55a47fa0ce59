// Main's side of the table of `limits.requests`: it makes its memory, and looks what visitors have used and how full it is. Nothing is spent by looking.

import { randomBytes } from "node:crypto";
import { createMetrics, type Registry } from "../../../base/metrics.ts";
import type { RequestLimit } from "../../../core/limits/site-limits.ts";
import type { ServedHost, ServingState } from "../../../core/serving/serving-state.ts";
import { rateMemory, RateTable, type RateMemory } from "./rate-table.ts";
import { VisitorReader } from "./request-rates.ts";

export const rateMetrics = {
  accel_agent_limit_table_used_ratio: {
    kind: "gauge",
    help: "How full the table of limits.requests is, from 0 to 1: addresses that have used something of what a rule allows them. At 0.25 one in a thousand of those who come anew is let through uncounted, at 0.5 one in twenty.",
  },
} as const;

export class RatesSeen {
  /** For the workers, until the process ends. */
  readonly memory: RateMemory;
  readonly #table: RateTable;
  readonly #visitors = new VisitorReader();
  readonly #metrics;

  constructor(registry: Registry, secret = randomBytes(32).toString("hex")) {
    this.memory = rateMemory(secret);
    this.#table = new RateTable(this.memory);
    this.#metrics = createMetrics(rateMetrics, registry);
  }

  /** Returns how many requests of this address the rule would let in at once; undefined if the text is no address. */
  left({ name, pace }: RequestLimit, address: string): number | undefined {
    const visitor = this.#visitors.read(address);
    if (visitor === undefined) return undefined;
    return this.#table.left(this.#table.keyOf(name), visitor, pace, nowUs);
  }

  /** Brings the metrics up to date: before they are read. Where no host has a rule, nothing is looked for in the table. */
  refresh({ domains }: Pick<ServingState, "domains">): void {
    const isUsed = domains.some(({ hosts }) => hosts.some(hasRules));
    this.#metrics.accel_agent_limit_table_used_ratio.set(isUsed ? this.#table.used(nowUs()) : 0);
  }
}

function hasRules({ site }: ServedHost): boolean {
  return site !== null && site.limits.requests.length > 0;
}

/** Counts from the start of the process, in all of its threads: see request-rates.ts. */
function nowUs(): number {
  return performance.now() * 1_000;
}
