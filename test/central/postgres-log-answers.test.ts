// What searches and numbers of request logs promise, kept in PostgreSQL.

import { testLogsOnPostgres } from "../support/on-postgres-logs.ts";

testLogsOnPostgres({
  search: async () => import("./agents/log-search.test.ts"),
  analytics: async () => import("./agents/analytics.test.ts"),
});
