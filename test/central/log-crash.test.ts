// Request logs at central through what ends programs and breaks files: SIGKILL in mid-commit, damaged pages, a full disk, a file taken away.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
  closeSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { LogThread, type LogThreadOptions } from "../../src/central/agents/log-client.ts";
import { shownPaths } from "../support/shown-paths.ts";
import { batchText } from "../support/fake-agent.ts";
import type { AppendMode } from "../support/log-append-child.ts";
import { judgeDays } from "../support/log-day-judge.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const child = join(import.meta.dirname, "../support/log-append-child.ts");
const lane = { epoch: "00000000000000e1", no: 1 };
const noon = Date.parse("2030-01-15T12:00:00Z");
const dayMs = 86_400_000;

/** What it said was committed, by lane, when it was killed. */
async function killedAfter(directory: string, mode: AppendMode, acks: number) {
  const program = spawn(process.execPath, [child, directory, mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(program, "exit");
  let said = "";
  program.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    if (said.split("\n").length > acks) program.kill("SIGKILL");
  });
  await exited;
  const whole = said.slice(0, said.lastIndexOf("\n") + 1);
  return new Map([...whole.matchAll(/^(\d+) (\d+)$/gm)].map(([, no, to]) => [no, Number(to)]));
}

test("after SIGKILL in mid-commit records, gaps and marks agree, and what was answered is there", async () => {
  using dir = tempDir();
  for (const acks of [1, 40, 200]) {
    const committed = await killedAfter(dir.path, "HONEST", acks);
    const marks = judgeDays(dir.path);
    for (const [no, through] of committed)
      expect(marks.get(`1/00000000000000c1/${no}`)).toBeGreaterThanOrEqual(through);
  }
}, 180_000);

test("a mark committed apart from its records is caught by the same judge", async () => {
  using dir = tempDir();
  await killedAfter(dir.path, "MARK_FIRST", Infinity);
  expect(() => judgeDays(dir.path)).toThrow(/numbers up to \d+, mark \d+/);
}, 180_000);

function start(directory: string, more: Partial<LogThreadOptions> = {}): LogThread {
  const entry = new URL("../../src/central/logger.ts", import.meta.url);
  return new LogThread({ entry, directory, log: silentLog(), broken: () => {}, ...more });
}

async function append(thread: LogThread, firstSeq: number, lastSeq: number, nowMs = noon) {
  const body = Buffer.from(batchText(firstSeq, lastSeq));
  return thread.append({ siteId: 1, lane, firstSeq, lastSeq, encoding: "identity", body, nowMs });
}

async function paths(thread: LogThread): Promise<readonly string[]> {
  const all = { domain: "www.example.test", limit: 10_000, after: undefined };
  const page = await thread.read({ siteId: 1, ...all, since: undefined, until: undefined });
  return shownPaths(page.logs);
}

const downFrom = (from: number, to: number): readonly string[] =>
  Array.from({ length: from - to + 1 }, (_, at) => `/${from - at}`);

/** Noise over the inside of a file, behind its head. */
function damage(path: string): void {
  const fd = openSync(path, "r+");
  const { size } = statSync(path);
  for (let at = 8_192; at + 4_096 <= size; at += 4_096)
    writeSync(fd, Buffer.alloc(2_048, 0x5a), 0, 2_048, at);
  closeSync(fd);
}

test("a file damaged inside is set aside when it is read; the others and new batches go on, and marks agree with what is left", async () => {
  using dir = tempDir();
  {
    await using thread = start(dir.path);
    for (let day = 0; day < 3; day++)
      await append(thread, day * 500 + 1, day * 500 + 500, noon + day * dayMs);
  }
  damage(join(dir.path, "2030-01-16.db"));
  damage(join(dir.path, "2030-01-17.db"));
  const broken: string[] = [];
  await using thread = start(dir.path, { broken: (path) => broken.push(path) });
  const left = await paths(thread);
  expect(left).toEqual(downFrom(500, 1));
  expect(broken.map((path) => path.slice(dir.path.length + 1)).sort()).toEqual([
    "2030-01-16.db.broken",
    "2030-01-17.db.broken",
  ]);
  const now = noon + 2 * dayMs;
  expect(await append(thread, 1_501, 1_502, now)).toEqual({ kind: "conflict", mark: 500 });
  expect(await append(thread, 501, 600, now)).toMatchObject({ kind: "committed" });
  expect(await paths(thread)).toEqual(downFrom(600, 1));
  expect([...judgeDays(dir.path).values()]).toEqual([600]);
});

test("a file that somebody took away is begun anew: no batch is answered for and written nowhere", async () => {
  using dir = tempDir();
  await using thread = start(dir.path);
  await append(thread, 1, 5);
  await append(thread, 6, 9, noon + dayMs);
  expect(await paths(thread)).toEqual(downFrom(9, 1));
  for (const name of readdirSync(dir.path))
    if (name.startsWith("2030-01-16")) rmSync(join(dir.path, name));
  expect(await append(thread, 10, 12, noon + dayMs)).toEqual({ kind: "conflict", mark: 5 });
  expect(await append(thread, 6, 12, noon + dayMs)).toMatchObject({ kind: "committed" });
  expect(await paths(thread)).toEqual(downFrom(12, 1));
  expect([...judgeDays(dir.path).values()]).toEqual([12]);
});

const smallBytes = 3 * 2 ** 20;

/** A small file system of its own; undefined where that is not allowed. */
function smallDisk(): ({ readonly path: string } & Disposable) | undefined {
  const dir = tempDir();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${smallBytes}`, "tmpfs", dir.path], {
      stdio: "ignore",
    });
  } catch {
    dir[Symbol.dispose]();
    return undefined;
  }
  return {
    path: dir.path,
    [Symbol.dispose]: () => {
      execFileSync("umount", ["-l", dir.path]);
      dir[Symbol.dispose]();
    },
  };
}

const canMount = ((): boolean => {
  using disk = smallDisk();
  return disk !== undefined;
})();

test.skipIf(!canMount)(
  "on a full disk batches are refused whole, told once, and taken again when there is room, asked or not",
  async () => {
    using disk = smallDisk();
    if (disk === undefined) throw new Error("it could be mounted before");
    const told: (string | undefined)[] = [];
    const failing = (reason: string | undefined): unknown => told.push(reason);
    await using thread = start(disk.path, { failing, retryIntervalMs: 30 });
    await append(thread, 1, 100);
    const ballast = join(disk.path, "ballast");
    fillUp(ballast);
    await expect(append(thread, 101, 2_000)).rejects.toMatchObject({ code: "LOGS_UNAVAILABLE" });
    await expect(append(thread, 101, 2_000)).rejects.toMatchObject({ code: "LOGS_UNAVAILABLE" });
    expect(thread.failure).toMatch(/full|disk I\/O/);
    expect(await paths(thread)).toEqual(downFrom(100, 1)); // Reading goes on.
    rmSync(ballast);
    await until("a write is tried", () => thread.failure === undefined);
    expect(told).toEqual([expect.any(String), undefined]);
    expect(await append(thread, 101, 2_000)).toMatchObject({ kind: "committed" });
    expect([...judgeDays(disk.path).values()]).toEqual([2_000]);
  },
);

test.skipIf(!canMount)(
  "on a disk that is full at the start the threads run, and batches are refused",
  async () => {
    using disk = smallDisk();
    if (disk === undefined) throw new Error("it could be mounted before");
    {
      await using thread = start(disk.path);
      await append(thread, 1, 100);
    }
    const ballast = join(disk.path, "ballast");
    fillUp(ballast);
    await using thread = start(disk.path, { retryIntervalMs: 30 });
    await thread.stats(60_000);
    await expect(append(thread, 101, 102)).rejects.toMatchObject({ code: "LOGS_UNAVAILABLE" });
    rmSync(ballast);
    expect(await append(thread, 101, 102)).toMatchObject({ kind: "committed" });
  },
);

function fillUp(path: string): void {
  for (let bytes = smallBytes; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    try {
      writeFileSync(path, Buffer.alloc(bytes), { flag: "a" });
    } catch {
      // Less is tried next.
    }
  }
}
