// Entry of central's threads of request logs: the only one that writes the files, and those beside it that read
// them and that count.

import { parentPort, workerData } from "node:worker_threads";
import type { LogThreadInit } from "./agents/log-messages.ts";
import { serveLogs } from "./agents/log-thread.ts";

if (parentPort === null) throw new TypeError("logger.ts is a thread's entry");
// log-worker.ts passes it.
serveLogs(workerData as LogThreadInit, parentPort);
