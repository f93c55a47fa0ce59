// What the customer API promises, over PostgreSQL.

import { testOnPostgres } from "../../support/on-postgres.ts";

testOnPostgres({
  activation: async () => import("../api/activation.test.ts"),
  audit: async () => import("../api/audit.test.ts"),
  "bot-rules": async () => import("../api/bot-rules.test.ts"),
  "bot-lists": async () => import("../api/bot-lists.test.ts"),
  "bot-sources": async () => import("../jobs/bot-sources.test.ts"),
  bots: async () => import("../api/bots.test.ts"),
  "cache-clear": async () => import("../api/cache-clear.test.ts"),
  "certificate-orders": async () => import("../acme/certificate-orders.test.ts"),
  certificates: async () => import("../api/certificates.test.ts"),
  "clear-dry-run": async () => import("../api/clear-dry-run.test.ts"),
  "fleet-activation": async () => import("../api/fleet-activation.test.ts"),
  "audit-trail": async () => import("../api/audit-trail.test.ts"),
  events: async () => import("../api/events.test.ts"),
  fleet: async () => import("../api/fleet.test.ts"),
  "listed-alerts": async () => import("../api/listed-alerts.test.ts"),
  isolation: async () => import("../api/isolation.test.ts"),
  links: async () => import("../api/links.test.ts"),
  "mark-wait": async () => import("../api/mark-wait.test.ts"),
  notifications: async () => import("../api/notifications.test.ts"),
  observing: async () => import("../api/observing.test.ts"),
  packages: async () => import("../api/packages.test.ts"),
  people: async () => import("../api/people.test.ts"),
  "pinned-viewset": async () => import("../api/pinned-viewset.test.ts"),
  rules: async () => import("../api/rules.test.ts"),
  "service-status": async () => import("../api/service-status.test.ts"),
  "unreviewed-bots": async () => import("../api/unreviewed-bots.test.ts"),
  vault: async () => import("../api/vault.test.ts"),
  viewsets: async () => import("../api/viewsets.test.ts"),
});
