// What is counted of pictures, by main.

import { createMetrics, type Metrics, type Registry } from "../../base/metrics.ts";

export const imageMetrics = {
  accel_agent_image_forms_total: {
    kind: "counter",
    help: "Forms of pictures that were asked of the encoder, by outcome: made, worthless (no tenth smaller than the original), unreadable (broken, animated, too large, or another format than it says), blocked (the day's number of the domain is spent), failed (too long, too much memory, too many waiting, or the encoder died), absent (this host has no encoder).",
    labels: ["domain", "outcome"],
  },
  accel_agent_image_made_total: {
    kind: "counter",
    help: "Forms of pictures that were made, by what they are: avif, webp, or same for the original's format at another width.",
    labels: ["format"],
  },
  accel_agent_image_source_bytes_total: {
    kind: "counter",
    help: "Bytes of the originals of the forms that were made.",
    labels: ["format"],
  },
  accel_agent_image_form_bytes_total: {
    kind: "counter",
    help: "Bytes of the forms that were made.",
    labels: ["format"],
  },
  accel_agent_image_cpu_seconds_total: {
    kind: "counter",
    help: "Processor time of the encoder.",
  },
  accel_agent_image_encode_seconds: {
    kind: "histogram",
    help: "How long the encoder took for a picture.",
    buckets: [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
  },
  accel_agent_image_waiting: {
    kind: "gauge",
    help: "Pictures that wait for the encoder.",
  },
  accel_agent_image_encoder_ends_total: {
    kind: "counter",
    help: "How often the encoder died or was killed.",
  },
} as const;

export function createImageMetrics(registry: Registry): Metrics<typeof imageMetrics> {
  return createMetrics(imageMetrics, registry);
}
