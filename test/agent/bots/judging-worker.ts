// The root of a worker thread in tests: the data plane with a cache in memory, the real judge, and records that go to the test.

import { rateMemory } from "../../../src/agent/accelerator/limits/rate-table.ts";
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { runAccelerator } from "../../../src/agent/accelerator/accelerator-thread.ts";
import type { WorkerBoot } from "../../../src/agent/accelerator/pool/worker-handle.ts";
import { createJudge } from "../../../src/agent/bots/decisions/evidence.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { toldRecord } from "../../support/told-record.ts";
import { MemoryCache } from "../accelerator/memory-cache.ts";

/** `records` tells the test of each record. */
export type JudgingParts = { readonly records: MessagePort };

if (parentPort === null) throw new TypeError("started by the test");
// The test starts this thread with nothing else.
const { accelerator, parts } = workerData as WorkerBoot<JudgingParts>;

await runAccelerator(accelerator, parentPort, {
  cache: new MemoryCache(),
  records: {
    accept: (record) => parts.records.postMessage(toldRecord(record), []),
    begins: () => undefined,
    wake: () => undefined,
    part: async () => undefined,
  },
  judge: createJudge(() => undefined),
  registry: new Registry(),
  log: silentLog(),
  random: Math.random,
  rates: rateMemory("a test"),
  originGuard: { ownListeners: [] },
  decisions: { note: () => "0" },
});
process.exit(0);
