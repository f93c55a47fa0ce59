// The log thread as a thing that can die: what waits is refused, it is started again, and closing waits for what was asked.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { LogThread } from "../../src/central/agents/log-client.ts";
import { LogStore } from "../../src/central/agents/log-store.ts";
import { batchText } from "../support/fake-agent.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const lane = { epoch: "00000000000000e1", no: 1 };
const nowMs = Date.parse("2030-01-15T12:00:00Z");

function start(directory: string): LogThread {
  const entry = new URL("../../src/central/logger.ts", import.meta.url);
  return new LogThread({ entry, directory, log: silentLog(), broken: () => {} });
}

async function append(thread: LogThread, seq: number) {
  const body = Buffer.from(batchText(seq, seq));
  const seqs = { firstSeq: seq, lastSeq: seq };
  return thread.append({ siteId: 1, lane, ...seqs, encoding: "identity", body, nowMs });
}

test("a thread that dies refuses what waits and is started again", async () => {
  using dir = tempDir();
  const directory = join(dir.path, "logs");
  await using thread = start(directory);
  await expect(append(thread, 1)).rejects.toMatchObject({ code: "SPOOL_FAILED" });
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
  using store = new LogStore(dir.path, () => {});
  const all = { domains: ["www.example.test"], limit: 100, after: undefined };
  const { lines } = store.read({ siteId: 1, ...all, since: undefined, until: undefined });
  expect(lines).toHaveLength(20);
});
