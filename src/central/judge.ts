// Entry of central's judging threads. They judge manifests of a million files and hostile devlove documents,
// while the main thread answers others.

import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { serveJudge } from "./judging/judge-thread.ts";

if (parentPort === null) throw new TypeError("judge.ts is a thread's entry");
/**
 * The niceness of the judge: what answers somebody goes first. On Linux a thread has a priority of its own.
 */
const niceness = 5;
if (process.platform === "linux") setPriority(niceness);
serveJudge(parentPort);
