// The scrubbing thread: it reads what is on the disk and compares it with its digests, too slowly for anybody
// to notice. It ends after one pass.

import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { BodyList } from "./cache/index/body-list.ts";
import type { WalkInit, WalkMessage } from "./scrub/messages.ts";
import { Walk, createReadPace } from "./scrub/walk.ts";

/** The priority of the thread: everybody else goes first. */
const niceness = 19;

const port = parentPort;
if (port === null) throw new TypeError("scrubber.ts is a thread of the agent");
// On Linux this sets the priority of the thread, elsewhere that of the whole process.
if (process.platform === "linux") setPriority(niceness);
// scrub/walker.ts starts this thread with nothing else.
const { blobsDir, cacheDir, from, bytesPerS, control } = workerData as WalkInit;
new Walk({
  blobsDir,
  bodies: new BodyList(cacheDir),
  from,
  pace: createReadPace(bytesPerS, new Int32Array(control)),
  nowMs: () => performance.now(),
  tell: (message: WalkMessage) => port.postMessage(message, []),
}).run();
