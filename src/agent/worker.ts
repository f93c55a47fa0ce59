// An accelerator worker: a thread that serves visitors. Opens its parts, gives them to the data plane, closes them when that has drained.

import { randomBytes } from "node:crypto";
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { createLog, type LogLevel } from "../base/log.ts";
import { Registry } from "../base/metrics.ts";
import { runAccelerator } from "./accelerator/accelerator-thread.ts";
import type { WorkerBoot } from "./accelerator/worker-handle.ts";
import { judgeVisitor } from "./bots/evidence.ts";
import { openClaimedBots } from "./bots/user-agents.ts";
import type { CacheInit } from "./cache/messages.ts";
import { openWorkerCache } from "./cache/worker-cache.ts";
import { openLaneWriter } from "./requests/lane-writer.ts";
import type { LaneInit } from "./requests/spool-messages.ts";

/** `data` of the pool's openParts; both ports are transferred. */
export type WorkerParts = {
  readonly cache: { readonly init: CacheInit; readonly port: MessagePort };
  readonly lane: { readonly init: LaneInit; readonly port: MessagePort };
  readonly logLevel: LogLevel;
};

const port = parentPort;
if (port === null) throw new TypeError("an accelerator worker is started by main");
// The pool starts this thread with nothing else.
const { accelerator, parts } = workerData as WorkerBoot<WorkerParts>;

const cache = openWorkerCache(parts.cache.init, parts.cache.port);
const lane = openLaneWriter(parts.lane.init, parts.lane.port);
const claimedBot = openClaimedBots();

await runAccelerator(accelerator, port, {
  cache,
  records: lane,
  judge: (bots, clientIp, userAgent) => judgeVisitor(bots, clientIp, claimedBot(userAgent)?.name),
  registry: new Registry(),
  log: createLog("accel-agent", parts.logLevel).child({ worker: accelerator.no }),
  random: Math.random,
  decisionId: () => randomBytes(8).toString("hex"),
});
await lane.close();
cache[Symbol.dispose]();
process.exit(0);
