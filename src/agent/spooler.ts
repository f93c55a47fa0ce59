// The root of the spool thread, which SpoolClient starts with a SpoolInit.

import { parentPort, workerData } from "node:worker_threads";
import { threadData } from "../base/prepared-threads.ts";
import { collectStartGarbage } from "../base/start-garbage.ts";
import { diskFiles } from "./requests/spool/spool-files.ts";
import type { SpoolInit } from "./requests/spool/spool-messages.ts";
import { runSpoolThread } from "./requests/spool/spool-thread.ts";

if (parentPort === null) throw new TypeError("spooler.ts is a thread of the agent");
// The data are a SpoolInit.
runSpoolThread(parentPort, (await threadData(workerData)) as SpoolInit, diskFiles);
collectStartGarbage({ firstMs: 4_500 });
