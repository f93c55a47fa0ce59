// The metrics of central's agents' side, in one table.

import { createMetrics, type Metrics, type Registry } from "../../base/metrics.ts";

export const agentsMetrics = {
  accel_central_channels: { kind: "gauge", help: "Agents connected by a channel." },
  accel_central_duplicate_agents: {
    kind: "gauge",
    help: "Instance ids that two connected agents use at the same time.",
  },
  accel_central_journal_entries_sent_total: {
    kind: "counter",
    help: "Journal entries sent over channels.",
  },
  accel_central_receipts_total: {
    kind: "counter",
    help: "Receipts of agents by phase, repetitions included.",
    labels: ["phase"],
  },
  accel_central_agent_requests_total: {
    kind: "counter",
    help: "Requests of agents by route and status.",
    labels: ["route", "status"],
  },
  accel_central_purges_total: {
    kind: "counter",
    help: "Purges that agents told of: ordered (clears that were written), joined (messages that became part of a later clear), flooded (messages that became part of one of everything).",
    labels: ["outcome"],
  },
  accel_central_log_batches_total: {
    kind: "counter",
    help: "Batches of request records by outcome.",
    labels: ["outcome"],
  },
  accel_central_log_records_total: { kind: "counter", help: "Request records committed." },
  accel_central_log_gaps_total: {
    kind: "counter",
    help: "Request records that agents reported as lost, by reason; docs/logs.md says what each means. `accel-central logs losses` says of which deployment site.",
    labels: ["reason"],
  },
  accel_central_log_unproven_total: {
    kind: "counter",
    help: "Numbers that agents had reserved when their process ended unexpectedly: at most so many request records more were lost.",
  },
  accel_central_log_queue_bytes: {
    kind: "gauge",
    help: "Bytes of request logs that are being received or wait for the log thread.",
  },
  accel_central_log_failing: {
    kind: "gauge",
    help: "1 while request logs cannot be stored: disk full or broken.",
  },
  accel_central_scrape_missing: {
    kind: "gauge",
    help: "1 while the store, or the request logs, did not answer in time for this scrape, so that what is read there is left out of it; by `of`: store, logs.",
    labels: ["of"],
  },
  accel_central_log_canary_age_seconds: {
    kind: "gauge",
    help: "Age of the newest canary that arrived with the request logs of a deployment site, by its name16.",
    labels: ["deployment"],
  },
} as const;

export type AgentMetrics = Metrics<typeof agentsMetrics>;

export function createAgentMetrics(registry: Registry): AgentMetrics {
  return createMetrics(agentsMetrics, registry);
}
