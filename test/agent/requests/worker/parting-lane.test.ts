// A worker's lane over a hand-over: each record is in the lane or goes to the successor, never in both and never in none.

import fc from "fast-check";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { LateRecords } from "../../../../src/agent/requests/ship/late-records.ts";
import { until } from "../../../support/until.ts";
import { PartingLane } from "../../../../src/agent/requests/worker/parting-lane.ts";

class Lane {
  readonly taken: string[] = [];
  readonly closing = Promise.withResolvers<void>();
  closes = 0;
  wakes = 0;
  accept = (record: unknown): void => void this.taken.push(String(record));
  wake = (): void => void this.wakes++;
  begins = (): Promise<void> | undefined => Promise.resolve();
  claim = (): boolean => false;
  close = async (): Promise<void> => {
    this.closes++;
    return this.closing.promise;
  };
}

test("each record is in one of the two, in its order, whenever the lane parts", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(20), fc.nat(20), async (before, after) => {
      const lane = new Lane();
      const late: string[] = [];
      const parting = new PartingLane(lane, {
        postMessage: (line: string) => void late.push(line),
      });
      for (let i = 0; i < before; i++) parting.accept(`${i}`);
      const parted = parting.part();
      for (let i = before; i < before + after; i++) parting.accept(`${i}`, true);
      lane.closing.resolve();
      await parted;
      await parting.close();
      const all = Array.from({ length: before + after }, (_, i) => `${i}`);
      expect({ lane: lane.taken, late }).toEqual({
        lane: all.slice(0, before),
        late: all.slice(before),
      });
      expect(lane.closes).toBe(1);
    }),
  );
});

test("behind the hand-over no request waits for the lane, and none wakes it", async () => {
  const lane = new Lane();
  const parting = new PartingLane(lane, { postMessage: () => undefined });
  expect(parting.claim()).toBe(false);
  expect(parting.begins()).toBeInstanceOf(Promise);
  void parting.part();
  parting.wake();
  expect([parting.claim(), parting.begins(), lane.wakes]).toEqual([true, undefined, 0]);
});

test("what main gathers waits until somebody takes it", async () => {
  const records = new LateRecords();
  const [one, two] = [records.openWorker(), records.openWorker()];
  one.postMessage("1");
  one.postMessage("2");
  const taken: string[] = [];
  records.follow((line) => taken.push(line));
  two.postMessage("3");
  await until("all have come", () => taken.length === 3);
  expect(taken.filter((line) => line !== "3")).toEqual(["1", "2"]);
  one.close();
  two.close();
  expect(records.lost).toBe(0);
});

test("the last lines of a worker that ends with them are here when all is complete", async () => {
  const says = `const { workerData: late } = require("node:worker_threads");
    setTimeout(() => { for (const line of ["1", "2", "3"]) late.postMessage(line); }, 5);`;
  // The event of a thread's end may come before what it said: in four of ten rounds it does.
  for (let round = 0; round < 50; round++) {
    const records = new LateRecords();
    const taken: string[] = [];
    records.follow((line) => taken.push(line));
    const late = records.openWorker();
    const worker = new Worker(says, { eval: true, workerData: late, transferList: [late] });
    await once(worker, "exit");
    await records.complete();
    expect(taken).toEqual(["1", "2", "3"]);
  }
});
