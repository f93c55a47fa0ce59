// What the customer API promises, of two centrals at one PostgreSQL, each call answered by any of them. Not here is what each central counts by itself: who proved a
// password lately (packages), and that a customer sends one list of bots at a time (bot-lists).

import { testOnPostgres } from "../../support/on-postgres.ts";

testOnPostgres(
  {
    activation: async () => import("../api/activation.test.ts"),
    audit: async () => import("../api/audit.test.ts"),
    bots: async () => import("../api/bots.test.ts"),
    "cache-clear": async () => import("../api/cache-clear.test.ts"),
    "clear-dry-run": async () => import("../api/clear-dry-run.test.ts"),
    "fleet-activation": async () => import("../api/fleet-activation.test.ts"),
    fleet: async () => import("../api/fleet.test.ts"),
    isolation: async () => import("../api/isolation.test.ts"),
    links: async () => import("../api/links.test.ts"),
    notifications: async () => import("../api/notifications.test.ts"),
    people: async () => import("../api/people.test.ts"),
    rules: async () => import("../api/rules.test.ts"),
    session: async () => import("../api/session.test.ts"),
    viewsets: async () => import("../api/viewsets.test.ts"),
  },
  2,
);
