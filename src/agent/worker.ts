// The root of an accelerator worker, a thread that serves visitors. It opens its parts, gives them to the
// data plane, and closes them when that has drained.

import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { createLog, followLogLevel, type LogLevelInit } from "../base/log.ts";
import { threadData } from "../base/prepared-threads.ts";
import { Registry } from "../base/metrics.ts";
import { isSuccessor } from "../base/succession.ts";
import { runAccelerator } from "./accelerator/accelerator-thread.ts";
import type { RateMemory } from "./accelerator/limits/rate-table.ts";
import type { WorkerBoot } from "./accelerator/pool/worker-handle.ts";
import type { DecisionInit } from "./bots/decisions/decision-log.ts";
import { DecisionTeller } from "./bots/decisions/decision-teller.ts";
import { createJudge } from "./bots/decisions/evidence.ts";
import { UnreviewedTeller } from "./bots/unreviewed/unreviewed-teller.ts";
import { openClaimedBots } from "./bots/unreviewed/user-agents.ts";
import type { CacheInit } from "./cache/messages.ts";
import { openWorkerCache } from "./cache/worker/worker-cache.ts";
import { ImageEncoderClient } from "./images/image-encoder-client.ts";
import { openLaneWriter } from "./requests/worker/lane-writer.ts";
import { PartingLane } from "./requests/worker/parting-lane.ts";
import type { LaneInit } from "./requests/spool/spool-messages.ts";
import type { OwnListener } from "../core/serving/own-listeners.ts";

/** The `data` of the pool's openParts; all ports in it are transferred. */
export type WorkerParts = {
  readonly cache: { readonly init: CacheInit; readonly port: MessagePort };
  readonly lane: { readonly init: LaneInit; readonly port: MessagePort };
  /** The port to main's LateRecords. */
  readonly lateRecords: MessagePort;
  /** The port to main's UnreviewedBots. */
  readonly unreviewed: MessagePort;
  readonly decisions: DecisionInit;
  readonly logLevel: LogLevelInit;
  readonly ownListeners: readonly OwnListener[];
  /** The port from main's OriginChecks. */
  readonly originChecks: MessagePort;
  /** The port from main's Purges. */
  readonly purges: MessagePort;
  readonly rates: RateMemory;
  /** The port from main's ImageDesk. */
  readonly images: MessagePort;
};

const port = parentPort;
if (port === null) throw new TypeError("an accelerator worker is started by main");
const claimed = openClaimedBots();
// A successor has the time: the first bot that comes to it waits no longer than the others.
if (isSuccessor(process.env)) claimed("Googlebot");
// The pool starts this thread with nothing else.
const { accelerator, parts } = (await threadData(workerData)) as WorkerBoot<WorkerParts>;

const cache = openWorkerCache(parts.cache.init, parts.cache.port);
const lane = new PartingLane(openLaneWriter(parts.lane.init, parts.lane.port), parts.lateRecords);
const decisions = new DecisionTeller(parts.decisions.port, parts.decisions.batchMax);
const unreviewed = new UnreviewedTeller(parts.unreviewed);
const log = createLog("accel-agent", parts.logLevel.level).child({ worker: accelerator.no });
followLogLevel(log, parts.logLevel.port);
const images = new ImageEncoderClient(parts.images);
// This covers every end of the thread that runs exit handlers.
process.once("exit", () => {
  unreviewed[Symbol.dispose]();
  decisions[Symbol.dispose]();
});

await runAccelerator(accelerator, port, {
  cache,
  records: lane,
  recordRoom: parts.lane.init.blocks === true ? lane : undefined,
  judge: createJudge(claimed, (domain, bot) => unreviewed.count(domain, bot)),
  registry: new Registry(),
  log,
  random: Math.random,
  decisions,
  originGuard: { ownListeners: parts.ownListeners },
  originChecks: parts.originChecks,
  purges: parts.purges,
  rates: parts.rates,
  images,
});
images[Symbol.dispose]();
await lane.close();
cache[Symbol.dispose]();
process.exit(0);
