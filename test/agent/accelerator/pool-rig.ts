// A pool with real threads, whose workers a user agent can make misbehave (worker-entry.ts).

import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { WorkerPool, WorkerPoolOptions } from "../../../src/agent/accelerator/pool/workers.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { startWorkers } from "../../support/start-workers.ts";
import { ask, stateOf } from "./edge.ts";
import type { TestParts } from "./worker-entry.ts";

type Started = {
  pool: WorkerPool;
  registry: Registry;
  health: Health;
  starts: number[];
  records: () => number;
} & AsyncDisposable;

type Overrides = Partial<WorkerPoolOptions> & {
  failingStarts?: ReadonlySet<number>;
  startMs?: number;
};

export async function start({
  failingStarts,
  startMs = 0,
  ...options
}: Overrides = {}): Promise<Started> {
  const registry = new Registry();
  const health = new Health(() => new Date());
  const stop = new AbortController();
  const starts: number[] = [];
  const ports: MessagePort[] = [];
  let recorded = 0;
  const pool = await startWorkers({
    count: 2,
    entry: new URL("./worker-entry.ts", import.meta.url),
    openParts: (no) => {
      starts.push(no);
      const { port1, port2 } = new MessageChannel();
      port1.on("message", () => recorded++);
      ports.push(port1);
      const failing = failingStarts?.has(starts.length) === true;
      const data: TestParts = { records: port2, failing, startMs };
      return { data, transfer: [port2] };
    },
    listen: { host: "127.0.0.1", port: 0 },
    proxies: { trusted: [], forwardedHeader: "x-forwarded-for", proxyProtocol: "off" },
    defaultDomain: null,
    blobsDir: "/nonexistent",
    drainGraceMs: 2_000,
    // Longer than a worker takes to start where everything is slow.
    stuckMs: 4_000,
    random: () => 0,
    registry,
    health,
    log: silentLog(),
    stop: stop.signal,
    ...options,
  });
  return {
    pool,
    registry,
    health,
    starts,
    records: () => recorded,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await pool[Symbol.asyncDispose]();
      for (const port of ports) port.close();
    },
  };
}

export const stateWithVersion = (version: number) =>
  stateOf(version, {
    headers: { set: { "X-Version": `${version}` } },
    redirects: [{ from: "/v", to: "/", status: 307 }],
  });

export async function versionSeen(pool: WorkerPool): Promise<number> {
  return Number((await ask(pool, "/v")).headers["x-version"]);
}
