// Request records on their way to disk: the spool with a group fdatasync against a bare write without sync and against rsyslog with a disk queue, on the
// same records in one run; and what a record costs the thread that serves visitors. Judged by processor time and ratios: other work on the
// machine lengthens the wall clock.

import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { openLaneWriter } from "../src/agent/requests/worker/lane-writer.ts";
import { LaneWords } from "../src/agent/requests/worker/lane-words.ts";
import { startSpooler, type SpoolClient } from "../src/agent/requests/ship/spool-client.ts";
import { diskFiles } from "../src/agent/requests/spool/spool-files.ts";
import type { Durability } from "../src/agent/requests/spool/spool-policy.ts";
import { Spool } from "../src/agent/requests/spool/spool.ts";
import { Health } from "../src/base/health.ts";
import { silentLog } from "../src/base/log.ts";
import { Registry } from "../src/base/metrics.ts";
import { requestRecord } from "../test/support/request-records.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { until } from "../test/support/until.ts";
import { startRsyslog } from "./peers/rsyslog.ts";
import { Figures } from "./support/figures.ts";

const records = 500_000;
const groupRecords = 512;
const fsyncBytes = 262_144;
/** rsyslog syncs each record by itself. */
const syslogRecords = { synced: 5_120, unsynced: 102_400 };
const acceptedRecords = 160_000;
/** Requests that end in one turn of the serving thread. */
const turnRecords = 16;
/** So many turns the spool thread may be behind: on a busy machine it would be asked for more than it gets. */
const roundsAhead = 8;

type Took = { readonly perSecond: number; readonly perCpuSecond: number };

/** As workers hand them over: NDJSON, 512 lines. Every line is another one. */
function groups(count: number): readonly Uint8Array<ArrayBuffer>[] {
  const text = new TextEncoder();
  return Array.from({ length: Math.ceil(count / groupRecords) }, (_, group) => {
    const lines = Array.from(
      { length: groupRecords },
      (_unused, at) => `${JSON.stringify(requestRecord(group * groupRecords + at))}\n`,
    );
    return text.encode(lines.join(""));
  });
}

function timed(count: number, action: () => void): Took {
  const began = performance.now();
  const cpu = process.cpuUsage();
  action();
  const { user, system } = process.cpuUsage(cpu);
  const wallS = (performance.now() - began) / 1_000;
  return { perSecond: count / wallS, perCpuSecond: count / ((user + system) / 1_000_000) };
}

function appendSpool(
  directory: string,
  payloads: readonly Uint8Array<ArrayBuffer>[],
  durability: Durability,
): { took: Took; syncs: number } {
  let syncs = 0;
  const spool = new Spool({
    files: { ...diskFiles, datasync: (file) => (syncs++, diskFiles.datasync(file)) },
    directory,
    bytesMax: 8 * 2 ** 30,
    whenFull: "drop_oldest",
    durability,
    name16: "0123456789abcdef",
    bootEpoch: "0000000000000001",
    clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
    notice: ({ text }) => {
      if (text !== undefined) throw new Error(text);
    },
  });
  const feed = spool.open(new LaneWords(LaneWords.allocate()));
  const took = timed(payloads.length * groupRecords, () => {
    payloads.forEach((payload, group) => {
      const firstSeq = group * groupRecords + 1;
      spool.receive(feed, { type: "group", firstSeq, count: groupRecords, payload });
      if (spool.unsyncedBytes >= fsyncBytes) spool.sync();
    });
    spool.sync();
  });
  const { spooled } = spool.facts().balance;
  if (spooled !== payloads.length * groupRecords) throw new Error(`${spooled} records are spooled`);
  return { took, syncs };
}

function appendBare(path: string, payloads: readonly Uint8Array[]): Took {
  const file = openSync(path, "wx");
  const took = timed(payloads.length * groupRecords, () => {
    for (const payload of payloads) writeSync(file, payload);
  });
  closeSync(file);
  return took;
}

async function appendSyslog(
  directory: string,
  payloads: readonly Uint8Array[],
  synced: boolean,
): Promise<(Took & { version: string }) | undefined> {
  await mkdir(directory);
  await using syslog = await startRsyslog(directory, { synced });
  if (syslog === undefined) return undefined;
  const count = payloads.length * groupRecords;
  const cpuMs = syslog.cpuMs();
  const began = performance.now();
  await syslog.send(payloads);
  const wallS = (performance.now() - began) / 1_000;
  const perCpuSecond = count / ((syslog.cpuMs() - cpuMs) / 1_000);
  return { perSecond: count / wallS, perCpuSecond, version: syslog.version };
}

/** Processor time of this thread for turns of `each` record and what they entail, beside the real spool thread. */
async function turnsUs(spool: SpoolClient, each: () => void): Promise<number> {
  const before = process.threadCpuUsage();
  for (let round = 0; round < acceptedRecords / turnRecords; round++) {
    if (round % roundsAhead === 0) await spool.balance(); // It has taken all that was sent.
    for (let i = 0; i < turnRecords; i++) each();
    await new Promise((resolve) => void setImmediate(resolve));
  }
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / acceptedRecords;
}

async function acceptUs(spool: SpoolClient, claims: boolean): Promise<number> {
  const { init, port } = spool.openLane();
  const writer = openLaneWriter({ ...init, blocks: claims }, port);
  writer.wake();
  await until("the lane", () => writer.isAwake);
  const one = requestRecord(1);
  const tookUs = await turnsUs(spool, () => {
    if (claims && !writer.claim()) throw new Error("there is no room");
    writer.accept(one, claims);
  });
  await writer.close();
  return tookUs;
}

async function serving(figures: Figures, stateDir: string): Promise<void> {
  const entry = new URL("../src/agent/spooler.ts", import.meta.url);
  await using spool = await startSpooler({
    entry,
    stateDir,
    spoolMax: 8 * 2 ** 30,
    name16: "0123456789abcdef",
    fsync: { intervalMs: 5, bytes: fsyncBytes },
    bootEpoch: "0000000000000001",
    registry: new Registry(),
    health: new Health(() => new Date()),
    log: silentLog(),
  });
  const turnUs = await turnsUs(spool, () => undefined);
  const plain = (await acceptUs(spool, false)) - turnUs;
  const claimed = (await acceptUs(spool, true)) - turnUs;
  const { dropped } = await spool.balance();
  figures.add("serving thread, a record", plain, "µs", { most: 3 });
  figures.add("  with room claimed before (block)", claimed, "µs", { most: 3 });
  const one = requestRecord(1);
  const began = process.threadCpuUsage();
  for (let i = 0; i < acceptedRecords; i++) JSON.stringify(one);
  const { user, system } = process.threadCpuUsage(began);
  figures.add("  JSON.stringify of the same record alone", (user + system) / acceptedRecords, "µs");
  const lost = Object.values(dropped).reduce((sum, count) => sum + count, 0);
  figures.add("  records dropped meanwhile", lost, "", { most: 0 });
}

export async function run(say: (line: string) => void): Promise<void> {
  using home = tempDir();
  const figures = new Figures(say);
  const payloads = groups(records);
  const bytes = payloads.reduce((sum, each) => sum + each.byteLength, 0);
  say(
    `${records} records of ${Math.round(bytes / payloads.length / groupRecords)} bytes, groups of ${groupRecords}`,
  );
  const bare = appendBare(join(home.path, "bare"), payloads);
  rmSync(join(home.path, "bare"));
  const show = (name: string, { perSecond, perCpuSecond }: Took, least?: number): void => {
    figures.add(name, perSecond, "records/s", least === undefined ? undefined : { least });
    const ratio = `${(perCpuSecond / bare.perCpuSecond).toFixed(2)} × bare`;
    figures.add("  in processor time", perCpuSecond, "records/s", undefined, ratio);
  };
  show("bare write, never synced", bare);
  for (const durability of ["group", "relaxed"] as const) {
    const directory = join(home.path, durability);
    const { took, syncs } = appendSpool(directory, payloads, durability);
    rmSync(directory, { recursive: true });
    show(`spool, ${durability} (${syncs} fdatasync)`, took, 200_000);
  }
  for (const synced of [true, false]) {
    const name = `rsyslog, disk queue, ${synced ? "synced" : "never synced"}`;
    const count = synced ? syslogRecords.synced : syslogRecords.unsynced;
    const some = payloads.slice(0, count / groupRecords);
    const took = await appendSyslog(join(home.path, `syslog-${synced}`), some, synced);
    if (took === undefined) say(`${name}: skipped, rsyslog is not installed`);
    else show(`${name} (${took.version})`, took);
  }
  await serving(figures, home.path);
  if (figures.missed.length > 0) process.exitCode = 1;
}
