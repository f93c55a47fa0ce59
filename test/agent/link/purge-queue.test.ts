// Purges on their way to central: gathered, kept over restarts, sent until central has them.

import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openAgentDb, type AgentDb } from "../../../src/agent/link/agent-db.ts";
import { PurgeQueue } from "../../../src/agent/link/purge-queue.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { AccelError, type FaultCode } from "../../../src/core/faults.ts";
import type { PurgeMessage } from "../../../src/wire/purge.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const scope = { domain: "www.example.com", host: null };

class Central {
  readonly told: PurgeMessage[] = [];
  fault: FaultCode | undefined;
  calls = 0;

  async postPurge(message: PurgeMessage): Promise<void> {
    this.calls++;
    if (this.fault !== undefined) throw new AccelError(this.fault, "no");
    this.told.push(message);
  }
}

function database(): { open(): AgentDb } {
  const dir = tempDir();
  onTestFinished(() => dir[Symbol.dispose]());
  return { open: () => openAgentDb(join(dir.path, "agent.db")) };
}

function queueOf(db: AgentDb, client: Central): PurgeQueue {
  return new PurgeQueue({
    db,
    instanceId: db.instanceId,
    client,
    registry: new Registry(),
    health: new Health(() => new Date(0)),
    log: silentLog(),
    random: () => 0,
    stop: new AbortController().signal,
  });
}

const left = ({ sqlite }: AgentDb): unknown =>
  sqlite.prepare("SELECT count(*) FROM purge").pluck().get();

test("what comes within a moment is one message for each domain", async () => {
  using db = database().open();
  const central = new Central();
  await using queue = queueOf(db, central);
  queue.add(scope, { urls: ["/a"] });
  queue.add(scope, { urls: ["/b"], tags: ["t"] });
  queue.add(scope, { urls: ["/a"] });
  queue.add({ domain: "www.example.org", host: null }, { urls: ["/c"] });
  expect(left(db)).toBe(4);
  await until("both are told", () => central.told.length === 2);
  expect(central.told).toEqual([
    {
      instance_id: db.instanceId,
      domain: "www.example.com",
      host: null,
      items: { urls: ["/a", "/b"], tags: ["t"] },
    },
    {
      instance_id: db.instanceId,
      domain: "www.example.org",
      host: null,
      items: { urls: ["/c"] },
    },
  ]);
  await until("they are forgotten", () => left(db) === 0);
});

test("what central was not told before a restart is told after it", async () => {
  const file = database();
  const central = new Central();
  central.fault = "CENTRAL_UNREACHABLE";
  {
    using db = file.open();
    await using queue = queueOf(db, central);
    queue.add(scope, { urls: ["/a"] });
    await until("it was tried", () => central.calls > 0);
  }
  central.fault = undefined;
  using db = file.open();
  expect(left(db)).toBe(1);
  await using _queue = queueOf(db, central);
  await until("it is told", () => central.told.length === 1);
  expect(central.told[0]?.items).toEqual({ urls: ["/a"] });
  await until("it is forgotten", () => left(db) === 0);
});

test("while central is away the queue has an end, and forgets nothing", async () => {
  using db = database().open();
  const central = new Central();
  await using queue = queueOf(db, central);
  for (let no = 0; no < 1_001; no++) queue.add(scope, { urls: [`/${no}`] });
  expect(left(db)).toBe(1);
  await until("it is told", () => central.told.length === 1);
  expect(central.told[0]?.items).toEqual({ everything: true });
});

test.each<[FaultCode, number]>([
  ["CONFLICT", 1],
  ["MESSAGE_INVALID", 2],
])("what central refuses for good (%s) is not kept", async (fault, calls) => {
  using db = database().open();
  const central = new Central();
  central.fault = fault;
  await using queue = queueOf(db, central);
  queue.add(scope, { urls: ["/a"] });
  await until("it is dropped", () => left(db) === 0, 30_000);
  expect(central.calls).toBe(calls);
});

test("central is told that a purge is soft, also one of everything", async () => {
  using db = database().open();
  const central = new Central();
  await using queue = queueOf(db, central);
  queue.add(scope, { tags: ["a"], soft: true });
  await until("it is told", () => central.told.length === 1);
  queue.add(scope, { everything: true, soft: true });
  await until("it is told, too", () => central.told.length === 2);
  expect(central.told.map(({ items }) => items)).toEqual([
    { tags: ["a"], soft: true },
    { everything: true, soft: true },
  ]);
});

test("a central that knows no soft purges is told of a purge instead", async () => {
  using db = database().open();
  class Older extends Central {
    override async postPurge(message: PurgeMessage): Promise<void> {
      if (message.items.soft === true) throw new AccelError("MESSAGE_INVALID", "no");
      await super.postPurge(message);
    }
  }
  const central = new Older();
  await using queue = queueOf(db, central);
  queue.add(scope, { tags: ["a"], soft: true });
  await until("it is told", () => central.told.length === 1);
  expect(central.told[0]?.items).toEqual({ tags: ["a"] });
  queue.add(scope, { everything: true, soft: true });
  await until("that is told, too", () => central.told.length === 2);
  expect(central.told[1]?.items).toEqual({ everything: true });
});

test("what is too much of soft purges stays soft", async () => {
  using db = database().open();
  const central = new Central();
  await using queue = queueOf(db, central);
  for (let no = 0; no < 1_001; no++) queue.add(scope, { urls: [`/${no}`], soft: true });
  await until("it is told", () => central.told.length === 1);
  expect(central.told[0]?.items).toEqual({ everything: true, soft: true });
});
