// The checkpointer thread: writes index.db's WAL back into the file, one run whenever the index thread asks for one.

import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { checkpoint } from "./cache/index/checkpointer.ts";

/** Visitors and clears go first. */
const niceness = 10;

const port = parentPort;
if (port === null) throw new TypeError("checkpointer.ts is a thread of the agent");
// On Linux this is of the thread, elsewhere of the whole process.
if (process.platform === "linux") setPriority(niceness);
// The index thread sends nothing else.
port.on("message", (directory: string) => port.postMessage(checkpoint(directory), []));
