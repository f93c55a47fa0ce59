// A worker thread with its real parts: visitors, cache index, verdicts and spool together, through a clear and a worker's death.

import { rateMemory } from "../../src/agent/accelerator/limits/rate-table.ts";
import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startIndexer } from "../../src/agent/cache/index/index-client.ts";
import { memoryOf } from "./cache/rig.ts";
import { LateRecords } from "../../src/agent/requests/ship/late-records.ts";
import { startSpooler } from "../../src/agent/requests/ship/spool-client.ts";
import { startWorkers } from "../support/start-workers.ts";
import { DecisionLog } from "../../src/agent/bots/decisions/decision-log.ts";
import { UnreviewedBots } from "../../src/agent/bots/unreviewed/unreviewed-bots.ts";
import type { WorkerParts } from "../../src/agent/worker.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog, LogLevels } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import type { ServingState } from "../../src/core/serving/serving-state.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { ask, host, openOrigin, stateOf } from "./accelerator/edge.ts";

const entry = (name: string): URL => new URL(`../../src/agent/${name}.ts`, import.meta.url);

async function openParts(stateDir: string, stack: AsyncDisposableStack) {
  const stop = new AbortController();
  const health = new Health(() => new Date());
  const log = silentLog();
  const registry = new Registry();
  const common = { registry, health, log, stop: stop.signal };
  const spool = stack.use(
    await startSpooler({
      entry: entry("spooler"),
      stateDir,
      spoolMax: 64 * 2 ** 20,
      fsync: { intervalMs: 5, bytes: 262_144 },
      bootEpoch: "0123456789abcdef",
      name16: "0123456789abcdef",
      ...common,
    }),
  );
  const index = stack.use(
    startIndexer({
      entry: entry("indexer"),
      matcherEntry: entry("matcher"),
      stateDir,
      diskMax: 64 * 2 ** 20,
      memoryMax: 2 ** 20,
      workers: 1,
      memory: memoryOf(stateDir),
      ...common,
    }),
  );
  index.setConfirmed();
  const bots = stack.use(new UnreviewedBots("boot", registry));
  const decisions = stack.use(new DecisionLog(registry));
  const late = new LateRecords();
  const pool = stack.use(
    await startWorkers({
      count: 1,
      entry: entry("worker"),
      openParts: () => {
        const cache = index.workerInit();
        const lane = spool.openLane();
        const unreviewed = bots.openWorker();
        const kept = decisions.openWorker(1);
        const logLevel = new LogLevels(silentLog(), "fatal").openThread();
        const { port1: originChecks } = new MessageChannel();
        const { port1: purges } = new MessageChannel();
        const { port1: images } = new MessageChannel();
        const lateRecords = late.openWorker();
        const data: WorkerParts = {
          cache,
          lane,
          lateRecords,
          unreviewed,
          decisions: kept,
          logLevel,
          ownListeners: [],
          originChecks,
          purges,
          rates: rateMemory("a test"),
          images,
        };
        const { port } = cache;
        const ports = [port, lane.port, lateRecords, unreviewed, kept.port, logLevel.port];
        return { data, transfer: [...ports, originChecks, purges, images] };
      },
      listen: { host: "127.0.0.1", port: 0 },
      proxies: { trusted: [], forwardedHeader: "x-forwarded-for", proxyProtocol: "off" },
      defaultDomain: null,
      blobsDir: stateDir,
      drainGraceMs: 1_000,
      random: Math.random,
      ...common,
    }),
  );
  stack.defer(() => stop.abort());
  return { pool, index, spool, bots, decisions, late };
}

/** What a new domain has: unreviewed bots are blocked. */
function withoutPolicy({ version, domains }: ServingState): ServingState {
  const strict = domains.map((domain) => ({
    ...domain,
    hosts: domain.hosts.map((one) => ({
      ...one,
      bots: { ...one.bots, unknownBotsCanAccess: null },
    })),
  }));
  return { version, domains: strict };
}

const browser = {
  "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
};

describe("a worker with its real parts", () => {
  it("stores, clears, blocks and records", async () => {
    using dir = tempDir();
    writeFileSync(`${dir.path}/page.html`, "a file");
    await using stack = new AsyncDisposableStack();
    let made = 0;
    const origin = stack.use(
      await openOrigin(
        (_q, r) => void r.writeHead(200, { "Content-Type": "image/png" }).end(`v${++made}`),
      ),
    );
    const { pool, index, spool, bots, decisions } = await openParts(dir.path, stack);
    const site = {
      backend: { urls: [origin.url] },
      cache: { rules: [{ path: "/img/**", ttl_s: 3600 }] },
    };
    await pool.publish((version) =>
      withoutPolicy(stateOf(version, site, { kind: "directory", root: dir.path })),
    );
    let asked = 0;
    const get = async (path: string): Promise<string> => {
      asked++;
      const { text, headers } = await ask(pool, path, { headers: browser });
      return `${text} ${headers["cache-status"]?.includes("hit") === true ? "hit" : "miss"}`;
    };

    expect(
      await until("the index", async () =>
        (await get("/img/a")).endsWith("hit") ? "hit" : undefined,
      ),
    ).toBe("hit");
    const known = made;
    expect(await get("/img/a")).toBe(`v${known} hit`);
    expect(await get("/img/b")).toBe(`v${known + 1} miss`);
    // A commit may take longer than an answer waits for it.
    await until("a hit", async () => (await get("/img/b")).endsWith("hit"));
    await until("a noted file", async () => (await get("/page.html")) === "a file hit");

    const stored = made;
    const clear = {
      clearId: "c1",
      domain: host,
      host: null,
      patterns: ["mime:png", "path:page"],
      seq: 1,
    };
    const { applied, gone } = index.clear(clear);
    expect((await applied).matched).toBe(3);
    expect(await get("/img/a")).toBe(`v${stored + 1} miss`);
    expect(await get("/page.html")).toBe("a file miss");
    await gone;

    const crawler = await ask(pool, "/img/a", { headers: { "user-agent": "Googlebot/2.1" } });
    expect([crawler.status, crawler.headers["x-accel-decision"]?.length]).toEqual([403, 16]);
    asked++;
    const id = String(crawler.headers["x-accel-decision"]);
    expect(await until("the decision", () => decisions.find(id))).toMatchObject({
      host,
      clientIp: "127.0.0.1",
      userAgent: "Googlebot/2.1",
      verdict: { kind: "block", reason: "unreviewed-blocked-by-default", bot: "Googlebot" },
    });
    const batch = await until("the count", () => bots.batch());
    expect(batch.counts).toMatchObject([{ domain: host, name: "Googlebot", requests: 1 }]);
    await until("all records", async () => (await spool.balance()).accepted === asked);
    const { accepted, spooled, committed, inMemory, dropped } = await spool.balance();
    expect(committed + spooled + inMemory + Object.values(dropped).reduce((a, b) => a + b, 0)).toBe(
      accepted,
    );
  });
});
