// The root of the spool thread, which SpoolClient starts with a SpoolInit.

import { parentPort, workerData } from "node:worker_threads";
import { diskFiles } from "./requests/spool/spool-files.ts";
import { runSpoolThread } from "./requests/spool/spool-thread.ts";

if (parentPort === null) throw new TypeError("spooler.ts is a thread of the agent");
runSpoolThread(parentPort, workerData, diskFiles);
