// A real access log as one visitor after the other, in order, through an edge that has every kind of trouble which loses nothing: a bad network, kills
// of central, orderly restarts of the agent.

import { Agent, request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import type { LoggedRequest } from "./access-log.ts";
import { domain } from "./customer-script.ts";
import { parseSums } from "./log-oracle-balance.ts";
import { centralDeaths, network } from "./log-oracle-faults.ts";
import { parseRecord } from "./log-oracle-record.ts";
import { randomFrom } from "./log-oracle-run.ts";
import { Scene } from "./log-oracle-scene.ts";
import { StoreReader, type StoredGap } from "./log-oracle-store.ts";
import { until } from "./until.ts";

export type Replayed = {
  /** In the order in which they happened. */
  readonly records: readonly RequestRecord[];
  readonly gaps: readonly StoredGap[];
  readonly faults: number;
  readonly restarts: number;
};

const restartsWanted = 3;
const drainedWithinMs = 150_000;

export async function replay(lines: readonly LoggedRequest[], seed: number): Promise<Replayed> {
  await using scene = await Scene.open();
  const random = randomFrom(seed);
  const done = new AbortController();
  const counts = { faults: 0, restarts: 0 };
  const trouble = async (): Promise<void> => {
    const faults = Object.values({ ...network, ...centralDeaths });
    while (!done.signal.aborted) {
      await faults[Math.floor(random() * faults.length)]?.(scene, random);
      counts.faults++;
      if (scene.central.ended) await scene.restartCentral();
      await sleep(random() * 500);
    }
  };
  const troubled = trouble();
  try {
    await send(scene, lines, counts);
  } finally {
    done.abort();
    await troubled;
  }
  const news = await arrived(scene);
  const records = news.rows
    .flatMap(({ line }) => parseRecord(line) ?? [])
    .sort((a, b) => a.when - b.when);
  return { records, gaps: news.gaps, ...counts };
}

async function send(
  scene: Scene,
  lines: readonly LoggedRequest[],
  counts: { restarts: number },
): Promise<void> {
  const restartEvery = Math.ceil(lines.length / (restartsWanted + 1));
  let agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (const [at, line] of lines.entries()) {
    if (at > 0 && at % restartEvery === 0) {
      agent.destroy();
      await scene.stopAgent();
      await scene.startAgent();
      counts.restarts++;
      agent = new Agent({ keepAlive: true, maxSockets: 1 });
    }
    await sendOne(scene.edge.ports.visitors, agent, line);
  }
  agent.destroy();
}

async function sendOne(port: number, agent: Agent, line: LoggedRequest): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const outgoing = httpRequest(
    {
      host: "127.0.0.1",
      port,
      agent,
      method: line.method,
      path: line.target,
      headers: {
        host: domain,
        "x-forwarded-for": line.ip,
        ...(line.userAgent === undefined ? {} : { "user-agent": line.userAgent }),
      },
    },
    (response) => {
      response.resume();
      response.on("end", resolve);
      response.on("error", reject);
    },
  );
  outgoing.on("error", reject);
  outgoing.end();
  await promise;
}

async function arrived(scene: Scene) {
  await until(
    "everything is at central",
    async () => {
      await sleep(200);
      const sums = parseSums(await scene.metrics());
      return sums !== undefined && sums.spooled === 0 && sums.inMemory === 0;
    },
    drainedWithinMs,
  );
  return new StoreReader(scene.storeDir).news();
}
