// Entry of central's log thread: the only one that opens the request-log files.

import { parentPort, workerData } from "node:worker_threads";
import type { LogThreadInit } from "./agents/log-messages.ts";
import { serveLogStore } from "./agents/log-thread.ts";

if (parentPort === null) throw new TypeError("logger.ts is a thread's entry");
// Given by startLogThread.
serveLogStore(workerData as LogThreadInit, parentPort);
