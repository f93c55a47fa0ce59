// Entry of the threads that talk to the database of request logs, each for one of the threads of request logs.

import { workerData } from "node:worker_threads";
import { serveSql, tellEnded, type SqlThreadInit } from "./agents/postgres-logs/sql-thread.ts";

// waiting-sql.ts passes it.
const init = workerData as SqlThreadInit;
process.once("exit", () => tellEnded(init));
serveSql(init);
