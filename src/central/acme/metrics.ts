// The metrics of certificates that central orders, in one table.

import { createMetrics, type Metrics, type Registry } from "../../base/metrics.ts";

export const acmeMetrics = {
  accel_central_certificate_orders: {
    kind: "gauge",
    help: "Certificates that devloves order by `tls.acme`, by state: issued (in force, to be renewed), ordering (central and the directory are at it), proving (agents and central prove the hosts), failed (the reason is in the log and in the API).",
    labels: ["state"],
  },
  accel_central_certificate_order_events_total: {
    kind: "counter",
    help: "What happened to orders of certificates: issued, refused (the directory said no), put-off (the directory was not reached or limits), mismatched (a host does not answer as the directory would need it), forgotten (the directory knows the order no more).",
    labels: ["outcome"],
  },
  accel_central_certificate_deliveries_total: {
    kind: "counter",
    help: "Issued certificates brought to deployment sites, by outcome: delivered, too-many (the site has no room).",
    labels: ["outcome"],
  },
  accel_central_ordered_certificate_first_expiry_timestamp_seconds: {
    kind: "gauge",
    help: "When the first of the certificates expires that central ordered and is to renew; 0 if there is none.",
  },
} as const;

export type AcmeMetrics = Metrics<typeof acmeMetrics>;

export function createAcmeMetrics(registry: Registry): AcmeMetrics {
  return createMetrics(acmeMetrics, registry);
}
