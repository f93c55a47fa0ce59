// What outbox, alerts and reports promise, over PostgreSQL.

import { testOnPostgres } from "../../support/on-postgres.ts";

testOnPostgres({
  alerts: async () => import("../alerts.test.ts"),
  reports: async () => import("../reports.test.ts"),
  sender: async () => import("../mail/sender.test.ts"),
  unsubscribe: async () => import("../unsubscribe.test.ts"),
});
