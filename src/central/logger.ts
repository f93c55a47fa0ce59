// Entry of central's two threads of request logs: the only one that writes the files, and the one beside it
// that reads them.

import { parentPort, workerData } from "node:worker_threads";
import type { LogThreadInit } from "./agents/log-messages.ts";
import { serveLogs } from "./agents/log-thread.ts";

if (parentPort === null) throw new TypeError("logger.ts is a thread's entry");
// log-worker.ts passes it.
serveLogs(workerData as LogThreadInit, parentPort);
