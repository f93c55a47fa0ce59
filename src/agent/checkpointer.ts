// The checkpointer thread: it writes index.db's WAL back into the file, once whenever the index thread asks
// for it.

import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { checkpoint } from "./cache/index/checkpointer.ts";

/** The priority of the thread: visitors and clears go first. */
const niceness = 10;

const port = parentPort;
if (port === null) throw new TypeError("checkpointer.ts is a thread of the agent");
// On Linux this sets the priority of the thread, elsewhere that of the whole process.
if (process.platform === "linux") setPriority(niceness);
// The index thread sends only the directory.
port.on("message", (directory: string) => port.postMessage(checkpoint(directory), []));
