// What the customer API promises, over PostgreSQL: what postgres-two-api.test.ts does not ask of two centrals there.

import { testOnPostgres } from "../../support/on-postgres.ts";

testOnPostgres({
  "bot-rules": async () => import("../api/bot-rules.test.ts"),
  "bot-lists": async () => import("../api/bot-lists.test.ts"),
  "bot-sources": async () => import("../jobs/bot-sources.test.ts"),
  "certificate-orders": async () => import("../acme/certificate-orders.test.ts"),
  "certificate-order-places": async () => import("../acme/order-places.test.ts"),
  "certificate-order-ends": async () => import("../acme/order-ends.test.ts"),
  "certificate-order-names": async () => import("../acme/order-names.test.ts"),
  certificates: async () => import("../api/certificates.test.ts"),
  "audit-trail": async () => import("../api/audit-trail.test.ts"),
  events: async () => import("../api/events.test.ts"),
  "listed-alerts": async () => import("../api/listed-alerts.test.ts"),
  "mark-wait": async () => import("../api/mark-wait.test.ts"),
  observing: async () => import("../api/observing.test.ts"),
  packages: async () => import("../api/packages.test.ts"),
  "pinned-viewset": async () => import("../api/pinned-viewset.test.ts"),
  "service-status": async () => import("../api/service-status.test.ts"),
  "unreviewed-bots": async () => import("../api/unreviewed-bots.test.ts"),
  vault: async () => import("../api/vault.test.ts"),
});
