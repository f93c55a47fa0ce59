// A thread that says what it was given, for prepared-threads.test.ts.

import { parentPort, workerData } from "node:worker_threads";
import { threadData } from "../../src/base/prepared-threads.ts";

parentPort?.postMessage(await threadData(workerData));
