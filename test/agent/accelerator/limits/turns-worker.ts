// One of two threads that spend from one table in turns, so that a test says which of them does what when. The atomic operations of the table wait for their turn; loads
// of successive entries are one step.

import { parentPort, workerData } from "node:worker_threads";
import { RateTable, type RateMemory } from "../../../../src/agent/accelerator/limits/rate-table.ts";
import { paceOf } from "../../../../src/core/limits/request-rate.ts";

export type Turns = {
  readonly memory: RateMemory;
  /** Three words: whose turn it is, how many threads have come to the visitor, and how many are through. */
  readonly shared: SharedArrayBuffer;
  readonly me: 0 | 1;
  /** For each visitor how many steps each turn has, thread 0 first, then alternately. Those behind the last one have enough for a worker to be through, or to wait. */
  readonly schedules: readonly (readonly number[])[];
};

const lastSteps = 60;
const turnsMax = 1_000;

if (parentPort !== null) {
  const { memory, shared, me, schedules } = workerData as Turns;
  const { load, store, add, wait, notify, compareExchange } = Atomics;
  const [turns, come, through] = [0, 4, 8].map((at) => new Int32Array(shared, at, 1));
  if (turns === undefined || come === undefined || through === undefined) throw new TypeError();
  const table = new RateTable(memory);
  const key = table.keyOf("in turns");
  const pace = paceOf({ rate: 1, per_s: 3_600, burst: 1 });

  let schedule: readonly number[] = [];
  let [own, first, steps, lastAt] = [0, 0, 0, 0];
  /** Returns how many steps the turn has. */
  const takeTurn = (): number => {
    for (let now = load(turns, 0); now !== own; now = load(turns, 0)) wait(turns, 0, now);
    return schedule[own - first] ?? lastSteps;
  };
  const endTurn = (): void => {
    store(turns, 0, own + 1);
    notify(turns, 0);
    own += 2;
  };
  const step = (): void => {
    let left = steps;
    while (left === 0) {
      endTurn();
      left = takeTurn();
    }
    steps = left - 1;
  };
  Object.assign(Atomics, {
    load: (words: Int32Array, at: number) => {
      if (at !== lastAt + 2) step();
      lastAt = at;
      return load(words, at);
    },
    compareExchange: (words: Int32Array, at: number, from: number, to: number) => {
      step();
      lastAt = -2;
      return compareExchange(words, at, from, to);
    },
  });

  const waitsUs: number[] = [];
  for (const [visitor, one] of schedules.entries()) {
    [schedule, first] = [one, turnsMax * (visitor + 1)];
    own = first + me;
    if (add(come, 0, 1) === 2 * visitor + 1) {
      store(turns, 0, first);
      notify(turns, 0);
    }
    steps = takeTurn();
    waitsUs.push(table.spend(key, { first: visitor, second: undefined }, pace, () => 0));
    const isLast = add(through, 0, 1) === 2 * visitor + 1;
    endTurn();
    // The other one has to go on by itself.
    if (isLast) continue;
    while (load(through, 0) < 2 * (visitor + 1)) {
      takeTurn();
      endTurn();
    }
  }
  parentPort.postMessage(waitsUs);
}
