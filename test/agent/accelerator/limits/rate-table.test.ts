// The table of `limits.requests`: what it lets in is what a bucket for each visitor would, over all threads together, and a line that is full lets in and says so.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  noRoom,
  rateMemory,
  RateTable,
  rateTableBytes,
} from "../../../../src/agent/accelerator/limits/rate-table.ts";
import { paceOf, type RateSettings } from "../../../../src/core/limits/request-rate.ts";
import { lateUs, type Hammer, type Hammered } from "./hammer-worker.ts";
import type { Turns } from "./turns-worker.ts";

const of = (first: number, second?: number) => ({ first, second });
const second = 1_000_000;
const at = (us: number) => () => us;

test("it takes 16 MiB", () => {
  expect(rateTableBytes).toBe(16 * 2 ** 20);
  expect(rateMemory("x").buffer.byteLength).toBe(rateTableBytes);
});

test("each visitor of each rule has a bucket of his own", () => {
  const settings = [
    { rate: 2, per_s: 1, burst: 3 },
    { rate: 5, per_s: 60, burst: 1 },
    { rate: 1, per_s: 86_400, burst: 2 },
  ];
  const step = fc.record({
    rule: fc.nat({ max: 2 }),
    visitor: fc.nat({ max: 5 }),
    passedUs: fc.constantFrom(0, 0, 0, 1_000, 400_000, 600_000, 13 * second, 90_000 * second),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.nat({ max: 2 ** 40 }), (steps, startUs) => {
      const table = new RateTable(rateMemory("a secret"));
      const buckets = new Map<string, { tokens: number; atUs: number }>();
      let nowUs = startUs;
      for (const { rule, visitor, passedUs } of steps) {
        nowUs += passedUs;
        const { rate, per_s: perS, burst } = settings[rule] ?? { rate: 1, per_s: 1, burst: 1 };
        const bucket = buckets.get(`${rule} ${visitor}`) ?? { tokens: burst, atUs: nowUs };
        const tokens = Math.min(burst, bucket.tokens + ((nowUs - bucket.atUs) * rate) / perS / 1e6);
        const pace = paceOf({ rate, per_s: perS, burst });
        const key = table.keyOf(`rule ${rule}`);
        const who = visitor % 2 === 0 ? of(visitor) : of(visitor, 9);
        const left = table.left(key, who, pace, at(nowUs));
        const waitUs = table.spend(key, who, pace, at(nowUs));
        expect(waitUs).not.toBe(noRoom);
        // Where the bucket is at the edge, a tick decides.
        if (Math.abs(tokens - 1) > 0.01) expect(waitUs === 0).toBe(tokens > 1);
        expect(left > 0).toBe(waitUs === 0);
        const spent = waitUs === 0 ? tokens - 1 : tokens;
        buckets.set(`${rule} ${visitor}`, { tokens: spent, atUs: nowUs });
      }
    }),
    { numRuns: 60 },
  );
});

test("who comes back when the ticks have wrapped is refused in one token's time at most", () => {
  const table = new RateTable(rateMemory("a secret"));
  for (const settings of [
    { rate: 20, per_s: 1, burst: 200 },
    { rate: 1_000, per_s: 1, burst: 10_000 },
    { rate: 5, per_s: 60, burst: 5 },
  ]) {
    const pace = paceOf(settings);
    const key = table.keyOf(JSON.stringify(settings));
    const tickUs = 2 ** pace.tickPower;
    const wrapUs = 2 ** 32 * tickUs;
    let refused = 0;
    // All over the ticks in which a debt may be one of any rule, and each tick of the last token.
    const early = Array.from({ length: 4_096 }, (_, no) => no * (2 ** 25 / 4_096));
    const edge = Array.from({ length: 2 * pace.interval }, (_, no) => pace.tolerance + no);
    for (const [visitor, beforeTicks] of [...early, ...edge].entries()) {
      expect(table.spend(key, of(visitor), pace, at(0))).toBe(0);
      const comesUs = wrapUs + (pace.interval - beforeTicks) * tickUs;
      const left = table.left(key, of(visitor), pace, at(comesUs));
      const waitUs = table.spend(key, of(visitor), pace, at(comesUs));
      if (beforeTicks > pace.tolerance + pace.interval) expect(left).toBe(settings.burst);
      if (waitUs > 0) refused++;
    }
    // Those of the edge, and of the others at most one.
    expect(refused - pace.interval).toBeLessThanOrEqual(1);
    expect(refused).toBeGreaterThanOrEqual(pace.interval);
  }
});

test("a bucket that another worker emptied after the clock was read is not taken for one of another day", () => {
  const memory = rateMemory("a secret");
  const [table, other] = [new RateTable(memory), new RateTable(memory)];
  const key = table.keyOf("a rule");
  const pace = paceOf({ rate: 1_000, per_s: 1, burst: 1 });
  expect(table.spend(key, of(7), pace, at(0))).toBe(0);
  let nowUs = 10_000;
  const clockUs = (): number => {
    const toldUs = nowUs;
    if (nowUs === 10_000) {
      nowUs += 5_000;
      expect(other.spend(key, of(7), pace, at(nowUs))).toBe(0);
    }
    return toldUs;
  };
  expect(table.spend(key, of(7), pace, clockUs)).toBe(999);
});

test("a line that is full lets others in, says so, and has room when a bucket is full again", () => {
  const table = new RateTable(rateMemory("a secret"));
  const key = table.keyOf("a rule");
  const pace = paceOf({ rate: 1, per_s: 60, burst: 1 });
  const visitors = 3_000_000; // Of 2,097,152 places.
  let missed = 0;
  let refused = 0;
  for (let visitor = 0; visitor < visitors; visitor++) {
    const waitUs = table.spend(key, of(visitor), pace, at(0));
    if (waitUs === noRoom) missed++;
    else if (waitUs > 0) refused++;
  }
  // Two visitors with one mark in one line: of three millions some.
  expect(refused).toBeLessThan(20);
  expect(missed).toBeGreaterThan(visitors - rateTableBytes / 8);
  expect(table.used(0)).toBeGreaterThan(0.9);
  expect(table.used(61 * second)).toBe(0);
  for (let visitor = 0; visitor < 10_000; visitor++)
    expect(table.spend(key, of(visitor + visitors), pace, at(61 * second))).toBe(0);
});

test("100,000 visitors are counted apart, and those who have something left are not refused", () => {
  const table = new RateTable(rateMemory("another secret"));
  const key = table.keyOf("a rule");
  const pace = paceOf({ rate: 1, per_s: 10, burst: 2 });
  const said = new Map<number, number>();
  for (let round = 0; round < 3; round++)
    for (let visitor = 0; visitor < 100_000; visitor++) {
      const waitUs = table.spend(key, of(0x0a00_0000 + visitor), pace, at(round * 1_000));
      const name = Math.sign(waitUs) + 10 * round;
      said.set(name, (said.get(name) ?? 0) + 1);
    }
  // Let in, let in, refused; nobody had no room.
  expect(said).toEqual(new Map([[0, 100_000], [10, 100_000], [21, 100_000]])); // prettier-ignore
});

test.each([
  ["all entries", 2],
  ["one entry of each line", 16],
])(
  "a worker that ended while it wrote %s: nobody else writes there at once, and it is free again",
  (_, step) => {
    const memory = rateMemory("a secret");
    const table = new RateTable(memory);
    const key = table.keyOf("a rule");
    const pace = paceOf({ rate: 1, per_s: 1, burst: 1 });
    const words = new Int32Array(memory.buffer);
    for (let word = 0; word < words.length; word += step) words[word] = 1;
    expect(table.spend(key, of(7), pace, at(0))).toBe(noRoom);
    expect(table.spend(key, of(7), pace, at(0))).toBe(0);
    expect(table.spend(key, of(7), pace, at(0))).toBeGreaterThan(0);
  },
);

test("under another secret, and under another name, the same address is somewhere else", () => {
  const memory = rateMemory("a secret");
  const table = new RateTable(memory);
  const pace = paceOf({ rate: 1, per_s: 60, burst: 1 });
  expect(table.spend(table.keyOf("a"), of(7), pace, at(0))).toBe(0);
  expect(table.spend(table.keyOf("b"), of(7), pace, at(0))).toBe(0);
  expect(table.spend(table.keyOf("a"), of(7, 0), pace, at(0))).toBe(0);
  const other = new RateTable({ ...memory, secret: "another" });
  expect(other.spend(other.keyOf("a"), of(7), pace, at(0))).toBe(0);
  expect(table.spend(table.keyOf("a"), of(7), pace, at(0))).toBeGreaterThan(0);
});

test("no thread reads an earlier time than another one has read before", async () => {
  // Each writes what it reads of the clock, and the other one reads the clock after it.
  const code = `
    const { parentPort, workerData: shared } = require("node:worker_threads");
    const [turn, told] = [new Int32Array(shared, 0, 1), new BigInt64Array(shared, 8, 1)];
    const asFloat = new Float64Array(1), asInt = new BigInt64Array(asFloat.buffer);
    const answer = (me, rounds) => {
      let late = 0;
      for (let round = 0; round < rounds; round++) {
        while (Atomics.load(turn, 0) !== me) Atomics.wait(turn, 0, 1 - me, 1);
        asInt[0] = Atomics.load(told, 0);
        if (performance.now() < asFloat[0]) late++;
        asFloat[0] = performance.now();
        Atomics.store(told, 0, asInt[0]);
        Atomics.store(turn, 0, 1 - me);
        Atomics.notify(turn, 0);
      }
      return late;
    };
    parentPort.once("message", (me) => parentPort.postMessage(answer(me, 10_000)));`;
  const shared = new SharedArrayBuffer(16);
  const workers = [0, 1].map(() => new Worker(code, { eval: true, execArgv: [], workerData: shared })); // prettier-ignore
  for (const [me, worker] of workers.entries()) worker.postMessage(me);
  const late = await Promise.all(workers.map(async (worker) => (await once(worker, "message"))[0]));
  expect(late).toEqual([0, 0]);
  await Promise.all(workers.map(async (worker) => worker.terminate()));
});

test("the clock of a thread counts from the start of the process, as that of every other does", async () => {
  const code = `require("node:worker_threads").parentPort.postMessage([Number(process.hrtime.bigint()) / 1e6 - performance.now(), 0])`;
  const ofMain = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  const worker = new Worker(code, { eval: true, execArgv: [] });
  const [ofWorker = 0] = (await once(worker, "message"))[0] as number[];
  // A thread may lose its core between its two clocks.
  expect(Math.abs(ofWorker - ofMain)).toBeLessThan(50);
  await worker.terminate();
});

async function hammer(threads: number, hammering: Omit<Hammer, "memory" | "start" | "seed">) {
  const memory = rateMemory("a secret");
  const start = new SharedArrayBuffer(4);
  const entry = new URL("hammer-worker.ts", import.meta.url);
  const results = Array.from({ length: threads }, async (_, seed): Promise<Hammered> => {
    const { promise, resolve, reject } = Promise.withResolvers<Hammered>();
    const workerData: Hammer = { ...hammering, memory, start, seed: seed + 1 };
    const worker = new Worker(entry, { workerData, execArgv: [] });
    worker.once("message", resolve).once("error", reject);
    return promise;
  });
  const began = setInterval(() => {
    Atomics.store(new Int32Array(start), 0, 1);
    Atomics.notify(new Int32Array(start), 0);
  }, 200);
  const all = await Promise.all(results);
  clearInterval(began);
  return all;
}

/** The most by which what was let in goes beyond burst and rate, over all visitors and spans of time. */
function excess(
  all: readonly Hammered[],
  { rate, per_s: perS, burst }: RateSettings,
  isJudged: (visitor: number) => boolean,
): number {
  let most = -Infinity;
  const perUs = rate / perS / 1e6;
  for (let visitor = 0; visitor < (all[0]?.letIn.length ?? 0); visitor++) {
    if (!isJudged(visitor)) continue;
    const times = all.flatMap(({ letIn }) => letIn[visitor] ?? []).toSorted((a, b) => a - b);
    // The largest of (count - rate × time) over all spans.
    let least = Infinity;
    for (const [at, time] of times.entries()) {
      least = Math.min(least, at - time * perUs);
      most = Math.max(most, at + 1 - time * perUs - least);
    }
  }
  return most - (burst ?? rate);
}

test("two workers who ask for one visitor: one of them is let in, whichever steps each does before the other", async () => {
  const upTo = (most: number) => Array.from({ length: most }, (_, no) => no + 1);
  const schedules = upTo(14).flatMap((a) =>
    upTo(14).flatMap((b) => upTo(14).map((c) => [a, b, c])),
  );
  const memory = rateMemory("a secret");
  const shared = new SharedArrayBuffer(12);
  const entry = new URL("turns-worker.ts", import.meta.url);
  const [ours = [], theirs = []] = await Promise.all(
    ([0, 1] as const).map(async (me): Promise<readonly number[]> => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly number[]>();
      const workerData: Turns = { memory, shared, me, schedules };
      const worker = new Worker(entry, { workerData, execArgv: [] });
      worker.once("message", resolve).once("error", reject);
      return promise;
    }),
  );
  const letIn = schedules.map((_, no) => [ours[no], theirs[no]].filter((wait) => wait === 0).length); // prettier-ignore
  expect(schedules.filter((_, no) => letIn[no] !== 1)).toEqual([]);
  // Both orders were met, and nobody gave up.
  expect(new Set([...ours, ...theirs].map(Math.sign))).toEqual(new Set([0, 1]));
  for (const one of [ours, theirs]) expect(one.filter((wait) => wait === 0).length).toBeGreaterThan(100); // prettier-ignore
}, 30_000);

test.each<[string, number, number, RateSettings]>([
  ["few visitors, who use up all they have", 4, 1_500, { rate: 50, per_s: 1, burst: 20 }],
  ["many, whose entries come and go", 3_000, 1_000, { rate: 1_000, per_s: 1, burst: 1 }],
])(
  "three threads: %s: never more than burst and rate over all of them",
  async (_, visitors, forMs, settings) => {
    const all = await hammer(3, { settings, visitors, forMs });
    const asked = all.reduce((sum, one) => sum + one.asked, 0);
    const missed = all.reduce((sum, one) => sum + one.missed, 0);
    expect(asked).toBeGreaterThan(10_000);
    // Somebody who writes an entry may lose his core, too.
    expect(missed).toBeLessThan(asked / 10_000);
    // An entry that is full again may be gone when somebody asks for a time that is over.
    const late = new Set(settings.burst === 1 ? all.flatMap((one) => [...one.late]) : []);
    expect(late.size).toBeLessThan(visitors / 2);
    const judged = excess(all, settings, (visitor) => !late.has(visitor));
    expect(judged).toBeLessThanOrEqual((settings.rate / settings.per_s) * (lateUs / 1e6) + 0.01);
  },
  20_000,
);
