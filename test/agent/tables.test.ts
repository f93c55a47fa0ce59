// Sets on their way from agent.db into the verdicts of real worker threads: compiled by a thread of their own, flipped under load, kept when that thread dies.

import { sameRules } from "../support/same-rules.ts";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { expect, test } from "vitest";
import { SetStore } from "../../src/agent/bots/sets/set-store.ts";
import { TableClient } from "../../src/agent/bots/tables/table-client.ts";
import { openAgentDb } from "../../src/agent/link/agent-db.ts";
import { LinkedDomains, Serving } from "../../src/agent/steering/serving.ts";
import type { WorkerPool } from "../../src/agent/accelerator/pool/workers.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { parseSha256, type Sha256 } from "../../src/core/ids.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../src/core/addresses/set-digest.ts";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import { canMountDisks, SmallDisk } from "../support/small-disk.ts";
import { startWorkers } from "../support/start-workers.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { ask, host } from "./accelerator/edge.ts";
import type { Harm } from "./bots/harmed-tabler.ts";
import type { JudgingParts } from "./bots/judging-worker.ts";

class Rig implements AsyncDisposable {
  readonly store: SetStore;
  readonly tables: TableClient;
  readonly serving: Serving;
  readonly pool: WorkerPool;
  readonly health: Health;
  readonly records: RequestRecord[];
  readonly dbPath: string;
  readonly #stack: AsyncDisposableStack;

  constructor(
    parts: Omit<Rig, "apply" | "elements" | typeof Symbol.asyncDispose>,
    stack: AsyncDisposableStack,
  ) {
    ({
      store: this.store,
      tables: this.tables,
      serving: this.serving,
      pool: this.pool,
      health: this.health,
      records: this.records,
      dbPath: this.dbPath,
    } = parts);
    this.#stack = stack;
  }

  elements: readonly SetElement[] = [];

  /** From the set that is there to these elements. */
  apply(elements: readonly SetElement[]): void {
    const version = this.store.list()[0]?.version ?? 0;
    const { kind } = this.store.applyDelta({
      domain: host,
      set: "bad",
      from_version: version,
      to_version: version + 1,
      added: elements.filter((element) => !this.elements.includes(element)),
      removed: this.elements.filter((element) => !elements.includes(element)),
      count: elements.length,
      digest: digestOf(elements),
      shrink_meant: true,
    });
    expect(kind).toBe("applied");
    this.elements = elements;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function digestOf(elements: readonly SetElement[]): Sha256 {
  const digest = parseSha256(changedSetDigest(emptySetDigest, elements, []));
  if (digest === undefined) throw new Error("no digest");
  return digest;
}

type Options = { readonly tabler?: URL; readonly buildWaitMs?: number; readonly workers?: number };

async function open(directory: string, options: Options = {}): Promise<Rig> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  stack.defer(() => stop.abort());
  const health = new Health(() => new Date());
  const common = { health, log: silentLog(), random: () => 0, stop: stop.signal };
  const dbPath = join(directory, "agent.db");
  const db = stack.use(openAgentDb(dbPath, "/nowhere"));
  db.put({ domains: { domains: [{ name: host, sub_domains: [] }] } });
  const tables = stack.use(
    new TableClient({
      entry: options.tabler ?? new URL("../../src/agent/tabler.ts", import.meta.url),
      dbPath,
      image: () => db.image(),
      registry: new Registry(),
      ...(options.buildWaitMs !== undefined && { buildWaitMs: options.buildWaitMs }),
      ...common,
    }),
  );
  const store = new SetStore(db.sqlite, (delta) => tables.note(delta));
  const records: RequestRecord[] = [];
  const pool = stack.use(
    await startWorkers({
      count: options.workers ?? 1,
      entry: new URL("./bots/judging-worker.ts", import.meta.url),
      openParts: () => {
        const { port1, port2 } = new MessageChannel();
        port1.on("message", (record: RequestRecord) => records.push(record));
        stack.defer(() => port1.close());
        const data: JudgingParts = { records: port2 };
        return { data, transfer: [port2] satisfies readonly MessagePort[] };
      },
      listen: { host: "127.0.0.1", port: 0 },
      proxies: {
        trusted: ["127.0.0.1"],
        forwardedHeader: "x-forwarded-for",
        proxyProtocol: "off",
      },
      defaultDomain: null,
      blobsDir: directory,
      drainGraceMs: 500,
      registry: new Registry(),
      ...common,
    }),
  );
  const locals = { get: () => undefined, look: async () => undefined };
  const serving = new Serving({
    documents: db,
    linked: new LinkedDomains(),
    sets: store,
    tables,
    locals,
    pool,
    queryRules: sameRules,
    now: () => new Date(),
  });
  await serving.restoreSets();
  await serving.publish();
  return new Rig({ store, tables, serving, pool, health, records, dbPath }, stack.move());
}

const visit = async (pool: WorkerPool, path: string, ip: string): Promise<number> =>
  (await ask(pool, path, { headers: { "x-forwarded-for": ip, "user-agent": "Firefox" } })).status;

const addresses = 400;
const ipOf = (i: number): string =>
  i % 2 === 0 ? `10.0.${i >> 8}.${i & 255}` : `2001:db8::${i.toString(16)}`;

/** Version v calls the holder of address i `v-i`; every other version holds whole networks beside. */
function setOf(version: number): readonly SetElement[] {
  const own = Array.from({ length: addresses }, (_, i) => ({
    bot: `${version}-${i}`,
    range: ipOf(i),
  }));
  if (version % 2 === 0) return own;
  return [...own, { bot: "wide", range: "10.0.0.0/8" }, { bot: "wide", range: "2001:db8::/32" }];
}

test(
  "flips under load: no verdict of an older set after a newer one, and none that is of no set",
  { timeout: 180_000 },
  async () => {
    using dir = tempDir();
    await using rig = await open(dir.path, { workers: 2 });
    rig.apply(setOf(1));
    await rig.serving.publishSets();
    let inForce = 1;
    let applying = 1;
    let asked = 0;
    const over = new AbortController();
    const expected = new Map<
      string,
      { readonly i: number; readonly least: number; most: number }
    >();
    const visitor = async (seed: number): Promise<void> => {
      for (let n = seed; !over.signal.aborted; n += 7) {
        const i = (n * 31) % addresses;
        const path = `/${++asked}`;
        const wanted = { i, least: inForce, most: 0 };
        expected.set(path, wanted);
        expect(await visit(rig.pool, path, ipOf(i))).toBe(403);
        wanted.most = applying;
      }
    };
    const visitors = [1, 2, 3, 4].map(visitor);
    for (let version = 2; version <= 40; version++) {
      applying = version;
      rig.apply(setOf(version));
      await rig.serving.publishSets();
      inForce = version;
    }
    over.abort();
    await Promise.all(visitors);
    await until("all records", () => rig.records.length === asked);
    const seen = new Set<number>();
    for (const { uri_path: path, bot } of rig.records) {
      const { i, least, most } = expected.get(path) ?? { i: -1, least: 0, most: 0 };
      const [version, of] = (bot ?? "").split("-").map(Number);
      expect([path, of]).toEqual([path, i]);
      expect(version).toBeGreaterThanOrEqual(least);
      expect(version).toBeLessThanOrEqual(most);
      seen.add(version ?? 0);
    }
    expect(asked).toBeGreaterThan(100);
    expect(seen.size).toBeGreaterThan(10);
  },
);

test("changes that come while one is published are published together, and all are in force", async () => {
  using dir = tempDir();
  await using rig = await open(dir.path);
  const before = rig.pool.status().version;
  const published = [1, 2, 3, 4, 5, 6, 7, 8].map(async (version) => {
    rig.apply(setOf(version));
    await rig.serving.publishSets();
  });
  await Promise.all(published);
  expect(rig.pool.status().version - before).toBeLessThanOrEqual(2);
  expect(await visit(rig.pool, "/", ipOf(5))).toBe(403);
  await until("its record", () => rig.records.length === 1);
  expect(rig.records[0]?.bot).toBe("8-5");
});

test("the sets of agent.db are in force at the first state of the next start", async () => {
  using dir = tempDir();
  {
    await using rig = await open(dir.path);
    rig.apply(setOf(3));
  }
  await using rig = await open(dir.path);
  expect(await visit(rig.pool, "/", ipOf(5))).toBe(403);
  expect(await visit(rig.pool, "/", "10.200.0.1")).toBe(403);
  expect(await visit(rig.pool, "/", "192.0.2.1")).not.toBe(403);
});

test.skipIf(!canMountDisks)(
  "on a disk without a free byte, where only main can open agent.db, they are as well, and change",
  async () => {
    using dir = tempDir();
    using disk = new SmallDisk("64M");
    disk.mount(join(dir.path, "state"));
    {
      await using rig = await open(disk.at);
      rig.apply(setOf(3));
    }
    disk.fill("for nobody");
    await using rig = await open(disk.at);
    expect(await visit(rig.pool, "/", "10.200.0.1")).toBe(403);
    rig.elements = setOf(3);
    rig.apply(setOf(4));
    await rig.serving.publishSets();
    expect(await visit(rig.pool, "/", "10.200.0.1")).not.toBe(403);
    expect(await visit(rig.pool, "/", ipOf(5))).toBe(403);
    await until("its record", () => rig.records.length === 3);
    expect(rig.records[2]?.bot).toBe("4-5");
  },
);

const harmed = new URL("./bots/harmed-tabler.ts", import.meta.url);
const harmOf = (rig: Rig, harm: Harm): string => `${rig.dbPath}.${harm}`;

test("a table thread that dies is started again; until it can, the last good tables are in force", async () => {
  using dir = tempDir();
  await using rig = await open(dir.path, { tabler: harmed });
  rig.apply(setOf(1));
  await rig.serving.publishSets();
  writeFileSync(harmOf(rig, "die"), "");
  rig.apply(setOf(2));
  await expect(rig.serving.publishSets()).rejects.toMatchObject({ code: "SETS_NOT_COMPILED" });
  expect(rig.health.list()).toMatchObject([{ code: "sets_not_compiled", severity: "error" }]);
  await rig.serving.publish(); // Anything else is published all the same.
  expect(await visit(rig.pool, "/", "10.9.9.9")).toBe(403);
  rmSync(harmOf(rig, "die"));
  await rig.serving.publishSets();
  expect(await visit(rig.pool, "/", "10.9.9.9")).not.toBe(403);
  expect(await visit(rig.pool, "/", ipOf(7))).toBe(403);
  expect(rig.health.list()).toEqual([]);
  await until("records", () => rig.records.length === 3);
  expect(rig.records[2]?.bot).toBe("2-7");
});

test("a table thread that never answers is given up", async () => {
  using dir = tempDir();
  await using rig = await open(dir.path, { tabler: harmed, buildWaitMs: 5_000 });
  writeFileSync(harmOf(rig, "hang"), "");
  rig.apply(setOf(1));
  await expect(rig.serving.publishSets()).rejects.toMatchObject({
    code: "SETS_NOT_COMPILED",
    message: expect.stringContaining("did not answer in time"),
  });
  rmSync(harmOf(rig, "hang"));
  await rig.serving.publishSets();
  expect(await visit(rig.pool, "/", ipOf(7))).toBe(403);
});
