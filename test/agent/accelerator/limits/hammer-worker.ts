// One of several threads that spend from one table as fast as they can, and tell what they were given.

import { parentPort, workerData } from "node:worker_threads";
import {
  RateTable,
  noRoom,
  type RateMemory,
} from "../../../../src/agent/accelerator/limits/rate-table.ts";
import { paceOf, type RateSettings } from "../../../../src/core/limits/request-rate.ts";

export type Hammer = {
  readonly memory: RateMemory;
  /** All of them begin when it is 1. */
  readonly start: SharedArrayBuffer;
  readonly settings: RateSettings;
  readonly visitors: number;
  readonly forMs: number;
  readonly seed: number;
};
export type Hammered = {
  /** By visitor: when requests were let in, µs by the clock of the process. */
  readonly letIn: readonly (readonly number[])[];
  /** Visitors for whom the thread lost its core between its clock and the table: it asked for a time that was over. */
  readonly late: ReadonlySet<number>;
  readonly missed: number;
  readonly asked: number;
};
/** A thread that takes longer for one question has lost its core. */
export const lateUs = 20;

if (parentPort !== null) {
  const { memory, start, settings, visitors, forMs, seed } = workerData as Hammer;
  const table = new RateTable(memory);
  const key = table.keyOf("hammered");
  const pace = paceOf(settings);
  const nowUs = (): number => performance.now() * 1_000;
  const letIn: number[][] = Array.from({ length: visitors }, () => []);
  const late = new Set<number>();
  let [missed, asked, random] = [0, 0, seed];
  let toldUs = 0;
  const clockUs = (): number => (toldUs = nowUs());
  Atomics.wait(new Int32Array(start), 0, 0);
  const endUs = nowUs() + forMs * 1_000;
  for (let atUs = nowUs(); atUs < endUs; atUs = nowUs()) {
    random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
    const visitor = (random >>> 8) % visitors;
    const waitUs = table.spend(key, { first: visitor, second: undefined }, pace, clockUs);
    asked++;
    if (nowUs() - atUs > lateUs) late.add(visitor);
    if (waitUs === 0) letIn[visitor]?.push(toldUs);
    else if (waitUs === noRoom) missed++;
  }
  parentPort.postMessage({ letIn, late, missed, asked } satisfies Hammered);
}
