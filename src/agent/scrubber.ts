// The scrubbing thread: reads what lies on the disk and compares it with its digests, slower than anybody could notice. One pass, then it ends.

import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { BodyList } from "./cache/index/body-list.ts";
import type { WalkInit, WalkMessage } from "./scrub/messages.ts";
import { Walk, createReadPace } from "./scrub/walk.ts";

/** Everybody else goes first. */
const niceness = 19;

const port = parentPort;
if (port === null) throw new TypeError("scrubber.ts is a thread of the agent");
// On Linux this is of the thread, elsewhere of the whole process.
if (process.platform === "linux") setPriority(niceness);
// Given by scrubbing.ts.
const { blobsDir, cacheDir, from, bytesPerS, control } = workerData as WalkInit;
new Walk({
  blobsDir,
  bodies: new BodyList(cacheDir),
  from,
  pace: createReadPace(bytesPerS, new Int32Array(control)),
  nowMs: () => performance.now(),
  tell: (message: WalkMessage) => port.postMessage(message, []),
}).run();
