// The metrics of the spool: its balance over all lanes, and its size on disk.

import { createMetrics, type Metrics, type Registry } from "../../../base/metrics.ts";
import { lossReasons } from "../../../wire/request-log.ts";
import type { SpoolFacts, SpoolNotice } from "../spool/spool-messages.ts";

export const spoolMetrics = {
  accel_agent_log_records_accepted_total: {
    kind: "counter",
    help: "Request records numbered since the state began: committed + spooled + in memory + dropped.",
  },
  accel_agent_log_records_committed_total: {
    kind: "counter",
    help: "Request records that central has committed, since the state began.",
  },
  accel_agent_log_records_dropped_total: {
    kind: "counter",
    help: "Request records lost or dropped since the state began, and reported to central as a gap.",
    labels: ["reason"],
  },
  accel_agent_log_records_unproven_total: {
    kind: "counter",
    help: "Numbers that were reserved ahead when the process ended unexpectedly, since the state began: at most so many records were lost with it. Most of them stand for no request. They are no part of accepted and dropped.",
  },
  accel_agent_log_records_unknown_total: {
    kind: "counter",
    help: "Numbers that central has as records or as gaps of processes whose disk took nothing any more, since the state began: this host cannot tell which. They are no part of accepted and dropped.",
  },
  accel_agent_log_records_spooled: {
    kind: "gauge",
    help: "Request records on disk that central has not acknowledged.",
  },
  accel_agent_log_records_in_memory: {
    kind: "gauge",
    help: "Request records that are not on disk yet.",
  },
  accel_agent_log_spool_bytes: { kind: "gauge", help: "Size of the spool's segments." },
  accel_agent_log_lanes: { kind: "gauge", help: "Lanes that central does not have completely." },
} as const;

export class SpoolMetrics {
  readonly #metrics: Metrics<typeof spoolMetrics>;

  constructor(registry: Registry) {
    this.#metrics = createMetrics(spoolMetrics, registry);
  }

  /** Sets the counters, for the thread keeps their values. */
  refresh({ balance, bytes, lanesTotal }: SpoolFacts): void {
    const { accepted, committed, spooled, inMemory, dropped, unproven, unknown } = balance;
    const metrics = this.#metrics;
    metrics.accel_agent_log_records_accepted_total.reset();
    metrics.accel_agent_log_records_accepted_total.inc(accepted);
    metrics.accel_agent_log_records_committed_total.reset();
    metrics.accel_agent_log_records_committed_total.inc(committed);
    metrics.accel_agent_log_records_dropped_total.reset();
    for (const reason of lossReasons)
      metrics.accel_agent_log_records_dropped_total.inc({ reason }, dropped[reason] ?? 0);
    metrics.accel_agent_log_records_unproven_total.reset();
    metrics.accel_agent_log_records_unproven_total.inc(unproven);
    metrics.accel_agent_log_records_unknown_total.reset();
    metrics.accel_agent_log_records_unknown_total.inc(unknown);
    metrics.accel_agent_log_records_spooled.set(spooled);
    metrics.accel_agent_log_records_in_memory.set(inMemory);
    metrics.accel_agent_log_spool_bytes.set(bytes);
    metrics.accel_agent_log_lanes.set(lanesTotal);
  }
}

// What an operator can do about each notice of the spool.

export const noticeHints: Readonly<Record<SpoolNotice["code"], string>> = {
  spool_failing: "Check free space and health of the disk that holds the state directory.",
  spool_full: "Check that central can be reached; or give the spool more room with `spool.max`.",
  spool_blocking:
    "Check that central can be reached and that the disk has room; or choose another `spool.when_full`.",
  spool_damaged:
    "Check the disk; what was damaged is kept in spool/corrupt/ of the state directory.",
  spool_conflict: "Give each machine its own state directory: a copied one must not run twice.",
  spool_foreign:
    "The site's credentials changed: those records were not sent. Keep what you need, then empty the directory.",
};
