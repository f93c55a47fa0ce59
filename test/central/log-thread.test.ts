// The log thread as a thing that can die: what waits is refused, it is started again, and closing waits for what was asked.

import { mkdirSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { LogThread } from "../../src/central/agents/log-client.ts";
import { OpenDays } from "../../src/central/agents/log-open-days.ts";
import { LogArchive } from "../../src/central/agents/log-archive.ts";
import { shownPaths } from "../support/shown-paths.ts";
import { batchText } from "../support/fake-agent.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const lane = { epoch: "00000000000000e1", no: 1 };
const nowMs = Date.parse("2030-01-15T12:00:00Z");
const dayMs = 86_400_000;

function start(directory: string): LogThread {
  const entry = new URL("../../src/central/logger.ts", import.meta.url);
  return new LogThread({ entry, directory, log: silentLog(), broken: () => {} });
}

async function append(thread: LogThread, seq: number, at = nowMs) {
  const body = Buffer.from(batchText(seq, seq));
  const seqs = { firstSeq: seq, lastSeq: seq };
  return thread.append({ siteId: 1, lane, ...seqs, encoding: "identity", body, nowMs: at });
}

test("a thread that dies refuses what waits and is started again", async () => {
  using dir = tempDir();
  const directory = join(dir.path, "logs");
  await using thread = start(directory);
  await expect(append(thread, 1)).rejects.toMatchObject({ code: "LOGS_UNAVAILABLE" });
  expect(await append(thread, 1)).toEqual({ kind: "busy" });
  mkdirSync(directory);
  await until("it takes batches again", async () => {
    const { kind } = await append(thread, 1);
    return kind === "committed" || kind === "repeated";
  });
});

test("closing waits for what was asked before", async () => {
  using dir = tempDir();
  const thread = start(dir.path);
  const asked = Array.from({ length: 20 }, async (_, at) => append(thread, at + 1));
  await thread[Symbol.asyncDispose]();
  expect((await Promise.all(asked)).map(({ kind }) => kind)).toEqual(Array(20).fill("committed"));
  using archive = new LogArchive(new OpenDays(dir.path));
  const all = { domain: "www.example.test", limit: 100, after: undefined };
  const page = archive.read({ siteId: 1, ...all, since: undefined, until: undefined });
  expect(page.kind === "page" && page.lines).toHaveLength(20);
});

test("days beyond retention go with their room, beside reads and batches; what a killed removal left goes at the start", async () => {
  using dir = tempDir();
  writeFileSync(join(dir.path, "2029-12-31.db.removed"), Buffer.alloc(200 * 2 ** 20));
  writeFileSync(join(dir.path, "2029-12-31.db-shm.removed"), "");
  await using thread = start(dir.path);
  await until("the rest is gone", () =>
    readdirSync(dir.path).every((name) => !name.includes("2029")),
  );
  await append(thread, 1);
  await append(thread, 2, nowMs + dayMs);
  const all = { domain: "www.example.test", limit: 100, after: undefined };
  const read = async () =>
    shownPaths((await thread.read({ siteId: 1, ...all, since: undefined, until: undefined })).logs)
      .length;
  expect(await read()).toBe(2); // The reading thread has both files open.
  const [removed, kind] = await Promise.all([
    thread.retain({ ageMs: dayMs / 4, bytesMax: 1e12 }, nowMs + dayMs),
    append(thread, 3, nowMs + dayMs).then((outcome) => outcome.kind),
  ]);
  expect([removed, kind]).toEqual([["2030-01-15"], "committed"]);
  expect(readdirSync(dir.path).filter((name) => name.startsWith("2030-01-15"))).toEqual([]);
  expect(openFiles(dir.path).filter((path) => path.includes("2030-01-15"))).toEqual([]);
  expect(await read()).toBe(2);
});

test("a day goes once it is folded, and its numbers are told beside reads and batches", async () => {
  using dir = tempDir();
  const directory = join(dir.path, "logs");
  mkdirSync(directory);
  const analytics = { path: join(dir.path, "analytics.db"), bytesMax: 1e9 };
  const entry = new URL("../../src/central/logger.ts", import.meta.url);
  const options = { entry, directory, analytics, log: silentLog(), broken: () => {} };
  await using thread = new LogThread(options);
  await append(thread, 1);
  await append(thread, 2, nowMs + dayMs);
  const at = {
    since: nowMs / 1e3,
    until: nowMs / 1e3 + 86_400,
    step: "day",
    by: undefined,
  } as const;
  const site = { siteIds: [1], linkedSiteIds: [1], domain: "www.example.test" };
  const requests = async (): Promise<unknown> => {
    const query = { ...at, ...site, since: 1_894_708_000, nowMs };
    const answer = await thread.numbers(query);
    return answer.kind === "numbers" ? Object(JSON.parse(answer.text)).totals.requests : answer;
  };
  expect(await requests()).toBe(2);
  const removed = await thread.retain({ ageMs: dayMs / 4, bytesMax: 1e12 }, nowMs + dayMs);
  expect(removed).toEqual(["2030-01-15"]);
  expect(await requests()).toBe(2);
  expect(await thread.numbersBytes(10_000)).toBeGreaterThan(0);
  await thread.fold(nowMs + dayMs);
});

/** Of this process, below the directory; files taken away are told as they were named. */
function openFiles(directory: string): readonly string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(directory) ? [path] : [];
    } catch {
      return []; // Closed meanwhile.
    }
  });
}
