// What the spool tells: each request is answered or refused, what is answered is known at once, and a disk that fails says so.

import { once } from "node:events";
import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { MessageChannel } from "node:worker_threads";
import pino from "pino";
import { expect, test } from "vitest";
import { openLaneWriter } from "../../../src/agent/requests/worker/lane-writer.ts";
import { startSpooler } from "../../../src/agent/requests/ship/spool-client.ts";
import { runSpoolThread } from "../../../src/agent/requests/spool/spool-thread.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { killableSpooler } from "../../support/killable-spooler.ts";
import { MemoryFiles, systemError } from "../../support/memory-files.ts";
import { requestRecord } from "../../support/request-records.ts";
import { SpoolRig } from "../../support/spool-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

test("a request that the thread cannot do is refused with its reason, and the next one is answered", async () => {
  const { port1: main, port2: thread } = new MessageChannel();
  const said: Record<string, unknown>[] = [];
  main.on("message", (message: Record<string, unknown>) => said.push(message));
  const files = new MemoryFiles();
  runSpoolThread(
    thread,
    {
      directory: "/state/spool",
      bytesMax: 2 ** 30,
      whenFull: "drop_oldest",
      durability: "group",
      name16: "0123456789abcdef",
      fsyncIntervalMs: 5,
      fsyncBytes: 262_144,
      bootEpoch: "a".repeat(16),
      heartbeat: new SharedArrayBuffer(4),
    },
    files,
  );
  const answerTo = async (id: number): Promise<Record<string, unknown> | undefined> =>
    until(`an answer to ${id}`, () => said.find((message) => message["id"] === id));
  const ask = (id: number, request: object): void =>
    main.postMessage({ type: "request", id, request });
  ask(1, { type: "facts" });
  expect(await answerTo(1)).toMatchObject({ type: "answer", answer: { facts: { lanesTotal: 0 } } });
  // No release of ours says this.
  ask(2, { type: "nonsense" });
  ask(3, { type: "facts" });
  expect(await answerTo(2)).toEqual({ type: "fault", id: 2, message: expect.any(String) });
  expect(await answerTo(3)).toMatchObject({ type: "answer" });
  const closed = once(main, "close");
  ask(4, { type: "close" });
  expect(await answerTo(4)).toMatchObject({ type: "answer" });
  await closed;
});

test("what an answer says is known at once", async () => {
  using home = tempDir();
  await using spool = await startSpooler({
    entry: killableSpooler,
    stateDir: home.path,
    spoolMax: 2 ** 30,
    name16: "0123456789abcdef",
    fsync: { intervalMs: 5, bytes: 262_144 },
    bootEpoch: "a".repeat(16),
    registry: new Registry(),
    health: new Health(() => new Date(0)),
    log: silentLog(),
  });
  const { init, port } = spool.openLane();
  const writer = openLaneWriter(init, port);
  await until("the lane", () => spool.facts().lanes.some(({ live }) => live));
  for (let id = 1; id <= 60; id++) {
    writer.accept(requestRecord(id));
    const balance = await spool.balance();
    expect(spool.facts().balance).toEqual(balance);
    expect(balance.accepted).toBe(id);
  }
  await writer.close();
});

test("a segment that cannot be read at the start is told, and what comes after it has other numbers", () => {
  const rig = new SpoolRig();
  rig.write(rig.worker(), 10);
  rig.files.fault = (operation, path) =>
    operation === "read" && path.endsWith(".seg") ? systemError("EIO") : undefined;
  rig.crash("kill");
  expect(rig.notices.map(({ code, text }) => [code, text])).toEqual([
    ["spool_failing", expect.stringContaining("EIO")],
  ]);
  rig.files.fault = () => undefined;
  rig.write(rig.worker(), 5);
  rig.drain();
  rig.judge();
  rig.balanced();
  // All records are at central. What may have been reserved beyond them is a bound, and no loss.
  expect(rig.spool.facts().balance).toMatchObject({ committed: 15, dropped: {} });
});

test("the first start after a crash tells the lanes and the bound once, an orderly end nothing", () => {
  const rig = new SpoolRig();
  const [first, second] = [rig.worker(), rig.worker()];
  rig.write(first, 10);
  rig.write(second, 5);
  rig.crash("kill");
  const { unproven, dropped } = rig.spool.facts().balance;
  expect(unproven).toBeGreaterThan(0); // Reserved ahead; no record was lost.
  expect(dropped).toEqual({});
  const lanes = ["0000000000000001/1", "0000000000000001/2"];
  expect(rig.losses).toEqual([{ lanes, lanesTotal: 2, atMost: unproven }]);
  rig.crash("kill"); // Nothing was numbered in between.
  expect(rig.losses.length).toBe(1);
  rig.restart();
  expect(rig.losses.length).toBe(1);
});

test("the line of a crash is in the log", async () => {
  using home = tempDir();
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const told = (): unknown => lines.find(({ records_at_most: most }) => most !== undefined);
  const options = {
    entry: killableSpooler,
    stateDir: home.path,
    spoolMax: 2 ** 30,
    name16: "0123456789abcdef",
    fsync: { intervalMs: 5, bytes: 262_144 },
    registry: new Registry(),
    health: new Health(() => new Date(0)),
    log,
  };
  {
    // The lane is never closed: as at a kill, what it had reserved stays.
    await using spool = await startSpooler({ ...options, bootEpoch: "a".repeat(16) });
    const { init, port } = spool.openLane();
    const writer = openLaneWriter(init, port);
    writer.wake();
    await until("the lane", () => writer.isAwake);
    writer.accept(requestRecord(1));
    cpSync(join(home.path, "spool"), join(home.path, "killed"), { recursive: true });
    await writer.close();
  }
  expect(told()).toBeUndefined();
  rmSync(join(home.path, "spool"), { recursive: true });
  renameSync(join(home.path, "killed"), join(home.path, "spool"));
  await using _ = await startSpooler({
    ...options,
    registry: new Registry(),
    bootEpoch: "b".repeat(16),
  });
  const line = await until("the line", told);
  expect(line).toMatchObject({ level: 40, lanes: [`${"a".repeat(16)}/1`], lanes_total: 1 });
});
