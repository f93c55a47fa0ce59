// The root of the table thread, which TableClient starts with a TablerInit.

import { parentPort, workerData } from "node:worker_threads";
import { threadData } from "../base/prepared-threads.ts";
import { runTabler } from "./bots/tables/tabler-thread.ts";
import type { TablerInit } from "./bots/tables/table-messages.ts";

if (parentPort === null) throw new TypeError("tabler.ts is a thread of the agent");
// Main starts this thread with nothing else.
runTabler(parentPort, (await threadData(workerData)) as TablerInit);
