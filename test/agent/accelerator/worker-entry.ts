// The root of a worker thread in tests: the data plane with a cache in memory, and a judge whom a user agent can make misbehave.

import { rateMemory } from "../../../src/agent/accelerator/limits/rate-table.ts";
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { runAccelerator } from "../../../src/agent/accelerator/accelerator-thread.ts";
import type { WorkerBoot } from "../../../src/agent/accelerator/pool/worker-handle.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { toldRecord } from "../../support/told-record.ts";
import { MemoryCache } from "./memory-cache.ts";

/** `records` tells the test of each record. */
export type TestParts = {
  readonly records: MessagePort;
  readonly failing: boolean;
  readonly startMs?: number;
};

if (parentPort === null) throw new TypeError("started by the test");
// The test starts this thread with nothing else.
const { accelerator, parts } = workerData as WorkerBoot<TestParts>;
// A host where everything is slow.
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, parts.startMs ?? 0);
if (parts.failing) throw new Error("this start fails");

await runAccelerator(accelerator, parentPort, {
  cache: new MemoryCache(),
  records: {
    accept: (record) => parts.records.postMessage(toldRecord(record), []),
    begins: () => undefined,
    wake: () => undefined,
    part: async () => undefined,
  },
  judge: (_bots, _ip, userAgent) => {
    if (userAgent === "die") process.exit(7);
    if (userAgent === "throw") queueMicrotask(() => fail());
    if (userAgent === "spin") for (;;);
    return { kind: "allow", reason: "not-a-bot", bot: null };
  },
  registry: new Registry(),
  log: silentLog(),
  random: Math.random,
  decisions: { note: () => "0" },
  rates: rateMemory("a test"),
  originGuard: { ownListeners: [] },
});
process.exit(0);

function fail(): void {
  throw new Error("nobody catches this");
}
