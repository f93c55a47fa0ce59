// What a worker counts. `domain` is a main domain that is linked, or "none": never what a visitor made up.

import { createMetrics, type Metrics, type Registry } from "../../base/metrics.ts";

const table = {
  accel_agent_requests_total: {
    kind: "counter",
    help: "Requests answered.",
    labels: ["domain", "cache", "status"],
  },
  accel_agent_request_duration_seconds: {
    kind: "histogram",
    help: "From the request's head to the last byte of its answer.",
    labels: ["domain"],
  },
  accel_agent_bytes_sent_total: {
    kind: "counter",
    help: "Bytes sent to visitors, heads included.",
    labels: ["domain"],
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
  accel_agent_origin_requests_total: {
    kind: "counter",
    help: "Requests that asked the origin.",
    labels: ["domain"],
  },
  accel_agent_origin_errors_total: {
    kind: "counter",
    help: "Requests that the origin gave no answer to.",
    labels: ["domain"],
  },
  accel_agent_origin_duration_seconds: {
    kind: "histogram",
    help: "From asking the origin to the head of its answer, repetitions included.",
    labels: ["domain"],
  },
  accel_agent_open_connections: {
    kind: "gauge",
    help: "Connections of visitors that are open.",
  },
  accel_agent_refused_connections_total: {
    kind: "counter",
    help: "Connections refused because too many were open.",
  },
} as const;

export type WorkerMetrics = Metrics<typeof table>;

export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  return createMetrics(table, registry);
}
