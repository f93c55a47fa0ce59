// What request logs promise, kept in PostgreSQL.

import { testLogsOnPostgres } from "../support/on-postgres-logs.ts";

testLogsOnPostgres({
  store: async () => import("./log-store.test.ts"),
  archive: async () => import("./log-archive.test.ts"),
  intake: async () => import("./agents/request-logs.test.ts"),
});
