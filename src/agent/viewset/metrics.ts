// The metrics of viewset transfers.

import { createMetrics, type Metrics, type Registry } from "../../base/metrics.ts";

export const viewsetMetrics = {
  accel_agent_viewset_activations_total: {
    kind: "counter",
    help: "Viewsets prepared for activation, by outcome: done, refused (not valid), failed (central or this host).",
    labels: ["outcome"],
  },
  accel_agent_viewset_imports_total: {
    kind: "counter",
    help: "Imports of a site from this host, by outcome: done, refused (not possible or not valid), failed (central or this host).",
    labels: ["outcome"],
  },
  accel_agent_viewset_blobs_total: {
    kind: "counter",
    help: "Blobs transferred, by direction: received from central, sent to it.",
    labels: ["direction"],
  },
  accel_agent_viewset_blob_bytes_total: {
    kind: "counter",
    help: "Bytes of blobs transferred, by direction. Received bytes include those of transfers that broke off.",
    labels: ["direction"],
  },
  accel_agent_viewset_blobs_collected_total: {
    kind: "counter",
    help: "Blobs removed because nothing needed them any longer.",
  },
  accel_agent_viewset_blobs_stored: {
    kind: "gauge",
    help: "Blobs on disk after the last collection.",
  },
  accel_agent_viewset_blob_bytes_stored: {
    kind: "gauge",
    help: "Bytes of the blobs on disk after the last collection.",
  },
  accel_agent_viewset_prepare_seconds: {
    kind: "histogram",
    help: "Time from an activation's manifest digest until everything is fetched, verified and durable.",
    buckets: [0.01, 0.05, 0.2, 1, 5, 20, 60, 300],
  },
} as const;

export type ViewsetMetrics = Metrics<typeof viewsetMetrics>;

export function createViewsetMetrics(registry: Registry): ViewsetMetrics {
  return createMetrics(viewsetMetrics, registry);
}
