// Calls to an index thread that says nothing: how long each is waited for, how many may wait, and what they are told when the agent stops.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Health } from "../../../../src/base/health.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { IndexClient } from "../../../../src/agent/cache/index/index-client.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { keyOf, openRig } from "../rig.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

function silentIndex() {
  const dir = tempDir();
  const path = join(dir.path, "silent.mjs");
  writeFileSync(
    path,
    'import { parentPort } from "node:worker_threads";\nparentPort.on("message", () => {});\n',
  );
  const entry = pathToFileURL(path);
  const client = new IndexClient({
    entry,
    matcherEntry: entry,
    stateDir: dir.path,
    diskMax: 1e9,
    memoryMax: 1e6,
    workers: 1,
    memory: {
      read: () => ({ epoch: undefined, number: 0, opening: undefined }) as never,
      note: () => undefined,
    },
    registry: new Registry(),
    health: new Health(() => new Date()),
    log: silentLog(),
    stop: new AbortController().signal,
  });
  return { client, dir };
}

const scope = { domain: "a.example", host: null } as never;

test.each<[string, number, (client: IndexClient) => Promise<unknown>]>([
  ["why", 5_000, async (client) => client.why([])],
  ["stats", 5_000, async (client) => client.stats()],
  ["search", 10_000, async (client) => client.search({ scope, patterns: ["a"], limit: 1 })],
  ["check", 150_000, async (client) => client.check()],
])("%s is waited for at most %i ms", async (name, ms, ask) => {
  const { client, dir } = silentIndex();
  using _ = dir;
  let why = "";
  const asked = ask(client).catch((error: unknown) => (why = String(error)));
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(why).toBe("");
  await vi.advanceTimersByTimeAsync(1);
  await asked;
  expect(why).toContain(`no answer to ${name} within ${ms} ms`);
  const closing = client[Symbol.asyncDispose]();
  await vi.advanceTimersByTimeAsync(20_000);
  await closing;
  await expect(client.stats()).rejects.toMatchObject({ code: "STOPPING" });
});

test("ten thousand calls may wait; those that do are told when the agent stops", async () => {
  const { client, dir } = silentIndex();
  using _ = dir;
  const waiting = Array.from({ length: 10_000 }, async () => client.scrub());
  const told = Promise.allSettled(waiting);
  await expect(client.stats()).rejects.toMatchObject({ code: "BUSY" });
  const closing = client[Symbol.asyncDispose]();
  await vi.advanceTimersByTimeAsync(20_000);
  await closing;
  for (const one of await told)
    expect(one).toMatchObject({ status: "rejected", reason: { code: "STOPPING" } });
});

test("who asks while the disk refuses the index is told why it is closed, and nothing of damage", async () => {
  using dir = tempDir();
  mkdirSync(join(dir.path, "cache/index.db"), { recursive: true }); // No database can be opened there.
  await using rig = openRig(dir.path);
  await until("the index was refused", () =>
    rig.health.list().some(({ code }) => code === "cache_closed"),
  );
  const scope = { domain: "a.test", host: null };
  for (const asked of [
    rig.client.search({ scope, patterns: ["path:x"], limit: 1 }),
    rig.client.why([keyOf()]),
  ])
    await expect(asked).rejects.toMatchObject({
      code: "INDEX_BROKEN",
      message: expect.stringMatching(/^the cache index is closed: .*unable to open/),
      hint: expect.stringContaining("make room"),
    });
});
