// The root of an accelerator worker in benchmarks: the real data plane and judge, and a timer that is due every 5 ms, whose lateness is told on request.

import { rateMemory } from "../../src/agent/accelerator/limits/rate-table.ts";
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { runAccelerator } from "../../src/agent/accelerator/accelerator-thread.ts";
import type { WorkerBoot } from "../../src/agent/accelerator/pool/worker-handle.ts";
import { createJudge } from "../../src/agent/bots/decisions/evidence.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { MemoryCache } from "../../test/agent/accelerator/memory-cache.ts";

/** Whatever is said to `probe` is answered with the lateness of each turn since then, in ms. */
export type ProbedParts = { readonly probe: MessagePort };

const everyMs = 5;

if (parentPort === null) throw new TypeError("started by a benchmark");
// The benchmark starts this thread with nothing else.
const { accelerator, parts } = workerData as WorkerBoot<ProbedParts>;
let late: number[] = [];
let due = performance.now() + everyMs;
const timer = setInterval(() => {
  const now = performance.now();
  late.push(Math.max(0, now - due));
  due = now + everyMs;
}, everyMs);
parts.probe.on("message", () => {
  parts.probe.postMessage(late, []);
  late = [];
});

await runAccelerator(accelerator, parentPort, {
  cache: new MemoryCache(),
  records: {
    accept: () => undefined,
    begins: () => undefined,
    wake: () => undefined,
    part: async () => undefined,
  },
  judge: createJudge(() => undefined),
  registry: new Registry(),
  log: silentLog(),
  rates: rateMemory("a test"),
  originGuard: { ownListeners: [] },
  random: Math.random,
  decisions: { note: () => "0" },
});
clearInterval(timer);
process.exit(0);
