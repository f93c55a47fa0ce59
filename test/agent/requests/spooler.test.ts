// The spool thread itself, with real files: from a worker's lane to central and back, over orderly ends and sudden ones.

import { mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { exposeMetrics, Registry } from "../../../src/base/metrics.ts";
import { totalDropped } from "../../../src/agent/requests/spool/gaps.ts";
import { openLaneWriter, type LaneWriter } from "../../../src/agent/requests/worker/lane-writer.ts";
import { startShipper } from "../../../src/agent/requests/ship/shipper.ts";
import { startSpooler, type SpoolClient } from "../../../src/agent/requests/ship/spool-client.ts";
import type { Balance } from "../../../src/agent/requests/spool/spool-messages.ts";
import { killableSpooler, killSpooler } from "../../support/killable-spooler.ts";
import { LogCentral } from "../../support/log-central.ts";
import { requestRecord } from "../../support/request-records.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

let home: ReturnType<typeof tempDir>;
let stack: AsyncDisposableStack;
let epoch = 0;

beforeEach(() => {
  home = tempDir();
  stack = new AsyncDisposableStack();
});
afterEach(async () => {
  await stack.disposeAsync();
  home[Symbol.dispose]();
});

const kill = async ({ spool, bootEpoch }: Started): Promise<void> => killSpooler(spool, bootEpoch);

type Started = { spool: SpoolClient; health: Health; registry: Registry; bootEpoch: string };

async function start(
  spoolMax = 2 ** 30,
  more: Partial<Parameters<typeof startSpooler>[0]> = {},
): Promise<Started> {
  const health = new Health(() => new Date(0));
  const registry = new Registry();
  const bootEpoch = (++epoch).toString(16).padStart(16, "a");
  const spool = await startSpooler({
    entry: killableSpooler,
    stateDir: home.path,
    spoolMax,
    name16: "0123456789abcdef",
    fsync: { intervalMs: 5, bytes: 262_144 },
    bootEpoch,
    registry,
    health,
    log: silentLog(),
    ...more,
  });
  stack.use(spool);
  return { spool, health, registry, bootEpoch };
}

function writerOf(spool: SpoolClient): LaneWriter {
  const { init, port } = spool.openLane();
  return openLaneWriter(init, port);
}

function accept(writer: LaneWriter, from: number, to: number): void {
  for (let id = from; id <= to; id++) writer.accept(requestRecord(id));
}

const laneReady = async (spool: SpoolClient): Promise<unknown> =>
  until("the lane", () => spool.facts().lanes.some(({ live }) => live));
const durable = async (spool: SpoolClient, count: number): Promise<unknown> =>
  until(`${count} records durable`, async () => (await spool.balance()).spooled >= count);

async function deliver(spool: SpoolClient, central: LogCentral): Promise<void> {
  await using shipper = startShipper({
    spool,
    post: async (batch) => central.post(batch),
    random: () => 0,
    registry: new Registry(),
    health: new Health(() => new Date(0)),
    log: silentLog(),
  });
  expect(await shipper.flush(60_000)).toBe(true);
}

function expectBalanced({ accepted, committed, spooled, inMemory, dropped }: Balance): void {
  expect(committed + spooled + inMemory + totalDropped(dropped)).toBe(accepted);
}

const ids = (central: LogCentral): readonly number[] =>
  central.records().map(({ connection }) => connection);
const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

test("from the worker to central, once and in order, over an orderly restart", async () => {
  const central = new LogCentral();
  const first = await start();
  const writer = writerOf(first.spool);
  await laneReady(first.spool);
  for (let sent = 0; sent < 800; sent += 100) {
    accept(writer, sent + 1, sent + 100);
    await durable(first.spool, sent + 100);
  }
  await writer.close();
  expect(await first.spool.balance()).toMatchObject({ accepted: 800, spooled: 800, inMemory: 0 });
  await first.spool[Symbol.asyncDispose]();

  const second = await start();
  expect(second.spool.facts().balance).toMatchObject({ accepted: 800, spooled: 800 });
  const next = writerOf(second.spool);
  await laneReady(second.spool);
  accept(next, 801, 1_000);
  await durable(second.spool, 1_000);
  await deliver(second.spool, central);
  const ofLane = ({ bootEpoch }: Started): readonly number[] =>
    [...central.lane(`${bootEpoch}/1`).records.values()].map(({ connection }) => connection);
  expect(ofLane(first)).toEqual(numbers(1, 800));
  expect(ofLane(second)).toEqual(numbers(801, 1_000));
  expect(central.gaps()).toEqual([]);
  expect(central.lanes.size).toBe(2);
  const balance = await second.spool.balance();
  expect(balance).toEqual({
    accepted: 1_000,
    committed: 1_000,
    spooled: 0,
    inMemory: 0,
    dropped: {},
    unproven: 0,
    unknown: 0,
  });
  await until("the old lane gone", () =>
    readdirSync(join(home.path, "spool")).every((name) => !name.startsWith(first.bootEpoch)),
  );
  expect(second.health.list()).toEqual([]);
});

test("metrics are the balance", async () => {
  const { spool, registry } = await start();
  const writer = writerOf(spool);
  await laneReady(spool);
  accept(writer, 1, 20);
  await writer.close();
  await spool.balance();
  const text = await exposeMetrics([await registry.getMetricsAsJSON()]);
  expect(text).toContain("accel_agent_log_records_accepted_total 20");
  expect(text).toContain("accel_agent_log_records_committed_total 0");
  expect(text).toContain("accel_agent_log_records_spooled 20");
  expect(text).toContain("accel_agent_log_records_in_memory 0");
  expect(text).toContain('accel_agent_log_records_dropped_total{reason="crash"} 0');
});

test("a thread that is killed: what was durable arrives, the rest is a gap of at most what was reserved", async () => {
  const central = new LogCentral();
  const first = await start();
  const writer = writerOf(first.spool);
  await laneReady(first.spool);
  accept(writer, 1, 100);
  await durable(first.spool, 100);
  const died = first.spool.died;
  accept(writer, 101, 103);
  await kill(first);
  expect((await died).message).toContain("the spool thread ended");
  expect(first.health.list().map(({ code }) => code)).toEqual(["spool_dead"]);
  await expect(first.spool.balance()).rejects.toMatchObject({
    code: "SPOOL_FAILED",
    message: "the spool thread ended",
  });
  accept(writer, 104, 105);
  await writer.close();

  const second = await start();
  await deliver(second.spool, central);
  expect(ids(central).slice(0, 100)).toEqual(numbers(1, 100));
  const [gap, ...others] = central.gaps();
  expect(others).toEqual([]);
  expect(gap).toMatchObject({ from: ids(central).length + 1, reason: "crash" });
  expect(gap?.to).toBeGreaterThanOrEqual(103);
  expect(gap?.to).toBeLessThan(5_000);
  expectBalanced(await second.spool.balance());
});

test("a worker that dies: exactly what it had not handed over is a gap", async () => {
  const central = new LogCentral();
  const { spool } = await start();
  const { init, port } = spool.openLane();
  const writer = openLaneWriter({ ...init, groupMs: 60_000 }, port);
  await laneReady(spool);
  accept(writer, 1, 7);
  port.close();
  await until("the lane sealed", async () => {
    await spool.balance();
    return spool.facts().lanes.every(({ live }) => !live);
  });
  await deliver(spool, central);
  expect(central.gaps()).toEqual([{ from: 1, to: 7, reason: "crash" }]);
  expect(await spool.balance()).toMatchObject({ accepted: 7, dropped: { crash: 7 } });
});

test("a worker that dies after its records were numbered: they are counted exactly, too", async () => {
  const central = new LogCentral();
  const { spool } = await start();
  const { init, port } = spool.openLane();
  const writer = openLaneWriter({ ...init, groupMs: 60_000 }, port);
  writer.wake();
  await until("the lane", () => writer.isAwake);
  accept(writer, 1, 7);
  port.close();
  await until("the lane sealed", async () => {
    await spool.balance();
    return spool.facts().lanes.every(({ live }) => !live);
  });
  await deliver(spool, central);
  expect(central.gaps()).toEqual([{ from: 1, to: 7, reason: "crash" }]);
  expect(await spool.balance()).toMatchObject({
    accepted: 7,
    dropped: { crash: 7 },
    unproven: 0,
    unknown: 0,
  });
});

test("an agent that served nobody, killed: nothing is told as lost", async () => {
  const central = new LogCentral();
  const first = await start();
  writerOf(first.spool);
  const used = writerOf(first.spool);
  await laneReady(first.spool);
  accept(used, 1, 1);
  await durable(first.spool, 1);
  await until("rest", () => !used.isAwake);
  await first.spool.balance(); // What it gave back has come.
  await kill(first);
  const second = await start();
  expect(second.spool.facts().balance).toMatchObject({ accepted: 1, dropped: {}, unproven: 16 });
  await deliver(second.spool, central);
  expect(central.gaps()).toEqual([{ from: 2, to: 17, reason: "crash" }]);
});

test("ending the spool takes what workers have sent, even unasked", async () => {
  const central = new LogCentral();
  const first = await start();
  const writer = writerOf(first.spool);
  writer.wake();
  await until("the lane", () => writer.isAwake);
  accept(writer, 1, 512 * 3);
  await first.spool[Symbol.asyncDispose]();
  const second = await start();
  await deliver(second.spool, central);
  expect(ids(central).length + central.lost()).toBe(512 * 3);
  expect(ids(central).length).toBeGreaterThanOrEqual(64);
});

test("a torn segment and a spoilt directory do not keep it from starting", async () => {
  const central = new LogCentral();
  const first = await start();
  const writer = writerOf(first.spool);
  await laneReady(first.spool);
  for (let i = 0; i < 4; i++) {
    accept(writer, i * 10 + 1, i * 10 + 10);
    await durable(first.spool, i * 10 + 10);
  }
  await kill(first);
  const directory = join(home.path, "spool");
  const [segment = ""] = readdirSync(directory).filter((name) => name.endsWith(".seg"));
  truncateSync(join(directory, segment), 40 + 20 + 3_000);
  writeFileSync(join(directory, "marks"), "nonsense");
  writeFileSync(join(directory, "something else.seg"), "nonsense");
  const second = await start();
  await deliver(second.spool, central);
  expect(ids(central)).toEqual(numbers(1, ids(central).length));
  expect(central.gaps()).toMatchObject([{ from: ids(central).length + 1, reason: "crash" }]);
  expect(second.health.list().map(({ code }) => code)).toEqual(["spool_damaged"]);
  await second.spool[Symbol.asyncDispose]();

  rmSync(directory, { recursive: true });
  writeFileSync(directory, "a file where the directory should be");
  const third = await start();
  const next = writerOf(third.spool);
  await laneReady(third.spool);
  accept(next, 1_000, 1_009);
  await next.close();
  await deliver(third.spool, central);
  expect(central.gaps().at(-1)).toEqual({ from: 1, to: 10, reason: "io_error" });
  expect(third.health.list().map(({ code }) => code)).toEqual(["spool_failing"]);
  rmSync(directory);
  mkdirSync(directory);
});

test("many writers, a small spool, a central that is away half of the time: all is accounted for", async () => {
  const central = new LogCentral();
  const { spool } = await start(2 ** 19);
  let calls = 0;
  const shipper = startShipper({
    spool,
    post: async (batch) => {
      if (++calls % 2 === 0) return { status: 503, answer: undefined, retryAfterMs: 1 };
      const answer = central.post(batch);
      return calls % 5 === 0 ? { status: 500, answer: undefined, retryAfterMs: undefined } : answer;
    },
    random: () => 0.01,
    registry: new Registry(),
    health: new Health(() => new Date(0)),
    log: silentLog(),
  });
  stack.use(shipper);
  const writers = Array.from({ length: 3 }, () => writerOf(spool));
  await until("three lanes", () => spool.facts().lanes.length === 3);
  let id = 0;
  for (let round = 0; round < 40; round++) {
    for (const writer of writers) accept(writer, id + 1, (id += 100));
    expectBalanced(await spool.balance());
  }
  await Promise.all(writers.map(async (writer) => writer.close()));
  // A drop counts at once, and its gap is told after it: nothing may be left of a lane but the gap at its end.
  await until("everything delivered or dropped, and each drop told", async () => {
    const { spooled, inMemory, dropped } = await spool.balance();
    return spooled + inMemory === 0 && central.lost() >= totalDropped(dropped);
  });
  const { accepted, committed, dropped } = await spool.balance();
  expect(accepted).toBe(id);
  expect(committed).toBe(central.records().length);
  expect(totalDropped(dropped)).toBe(central.lost());
  expect(new Set(ids(central)).size).toBe(central.records().length);
});

test("under block a worker finds no room for more, drops nothing, and goes on when central has taken some", async () => {
  const central = new LogCentral();
  const { spool, health } = await start(2 ** 17, { whenFull: "block" });
  const writer = writerOf(spool);
  writer.wake();
  await until("the lane", () => writer.isAwake);
  let id = 0;
  await until("the spool full", async () => {
    for (let i = 0; i < 50 && writer.claim(); i++) writer.accept(requestRecord(++id), true);
    await spool.balance();
    return health.list().some(({ code }) => code === "spool_blocking");
  });
  expect(writer.claim()).toBe(false);
  const { accepted, dropped } = await spool.balance();
  expect({ accepted, dropped }).toEqual({ accepted: id, dropped: {} });
  await deliver(spool, central);
  await until("room again", () => writer.claim());
  writer.accept(requestRecord(++id), true);
  await writer.close();
  await deliver(spool, central);
  expect(ids(central)).toEqual(numbers(1, id));
  expect(central.gaps()).toEqual([]);
});
