// The thread that talks to a database of request logs, for a server whose commits do not outlive a power failure: a sync of
// each would cost tests most of their time.

import { workerData } from "node:worker_threads";
import { logServerFault } from "../../src/central/agents/postgres-logs/log-database.ts";
import {
  serveSql,
  tellEnded,
  type SqlThreadInit,
} from "../../src/central/agents/postgres-logs/sql-thread.ts";
import { serverFactsOf, serverFactsSql } from "../../src/central/store/engine/postgres-server.ts";

// waiting-sql.ts passes it.
const init = workerData as SqlThreadInit;
process.once("exit", () => tellEnded(init));
serveSql(init, async (ask, where) => {
  const [facts] = await ask(serverFactsSql);
  const fault = logServerFault({ ...serverFactsOf(Object(facts)), fsync: "on" }, true, where);
  if (fault !== undefined) throw fault;
});
