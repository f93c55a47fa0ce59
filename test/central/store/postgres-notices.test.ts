// What outbox, alerts and reports promise, over PostgreSQL.

import { testOnPostgres } from "../../support/on-postgres.ts";

testOnPostgres({
  "alert-messages": async () => import("../alert-messages.test.ts"),
  alerts: async () => import("../alerts.test.ts"),
  "chat-lane": async () => import("../mail/chat-lane.test.ts"),
  "image-blocks-sent": async () => import("../mail/image-blocks-sent.test.ts"),
  limits: async () => import("../mail/limits.test.ts"),
  releases: async () => import("../release-notices.test.ts"),
  reports: async () => import("../reports.test.ts"),
  sender: async () => import("../mail/sender.test.ts"),
  unsubscribe: async () => import("../unsubscribe.test.ts"),
});
