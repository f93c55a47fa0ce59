// One central with 1,000 customers, 20,000 domains and 5,000 connected agents, on one machine with them: how soon a clear of a domain that all of them serve is
// receipted, how soon all are back after central was restarted, what an agent costs of central's memory, and what a plain read costs beside a bare route.

import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openSqlite } from "../src/base/sqlite.ts";
import { Edge } from "../test/support/edge.ts";
import { freePorts } from "../test/support/free-ports.ts";
import { until } from "../test/support/until.ts";
import { measure, show } from "./load.ts";
import { Figures, percentile } from "./support/figures.ts";
import { fleetDomain, seedFleet } from "./support/fleet-seed.ts";
import { LightFleet, startProcess } from "./support/light-fleet.ts";
import { cpuMsOf } from "./support/processor-time.ts";
import { unitEnvironment } from "./support/unit-options.ts";

const sizes = {
  customers: 1_000,
  domains: 20_000,
  sites: Number(process.env["ACCEL_FLEET"] ?? 5_000),
};
const processes = 2;
const clears = 5;
const waitMs = 180_000;
/** In which each agent has polled, the connections of its first requests have ended, and the engine has collected what a burst left. */
const restMs = 120_000;
/** Then so many looks, so far apart: what is resident goes up and down with the engine's collections. */
const looks = 24;
const lookMs = 5_000;

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  await using edge = await Edge.prepare();
  const stateDir = join(edge.dir, "central");
  mkdirSync(stateDir, { mode: 0o700 });
  const { token, sites } = await seedFleet(stateDir, sizes);
  edge.api.token = token;
  using _ = unitEnvironment("accel-central");
  await edge.startCentral();
  await comparePlainReads(edge, stateDir, token, figures, say);
  const before = memoryOf(edge.central.pid);
  using fleet = new LightFleet([`http://127.0.0.1:${edge.ports.central}`], sites, processes);
  const all = async (): Promise<boolean> => fleet.connected === sites.length;
  figures.head(`${sites.length} agents`);
  const connecting = performance.now();
  const busy = cpuMsOf(edge.central.pid);
  await until("all are connected", all, waitMs);
  const cpuMs = (cpuMsOf(edge.central.pid) - busy) / sites.length;
  figures.add("connected the first time, with a snapshot each, in", seconds(connecting), "s");
  figures.add("central's processor time for each", cpuMs, "ms");
  await clearAll(edge, stateDir, figures);
  const perAgent = (): number => (memoryOf(edge.central.pid) - before) / sites.length;
  figures.add("central's memory for each, just behind the clears", perAgent(), "KiB");
  await sleep(restMs);
  const seen: number[] = [];
  for (let no = 0; no < looks; no++) {
    seen.push(perAgent());
    await sleep(lookMs);
  }
  figures.add(
    "central's memory for each, two to four minutes later, p50",
    percentile(seen, 0.5),
    "KiB",
    {
      most: 40,
    },
  );
  figures.add("the most of that time", Math.max(...seen), "KiB");
  await restart(edge, fleet, all, figures);
  await clearAll(edge, stateDir, figures);
  for (const [what, count] of fleet.failures()) say(`failed: ${count} × ${what}`);
  say(
    `load of the host over 1, 5 and 15 minutes: ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

/** Resident, in KiB. */
function memoryOf(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib);
}

const seconds = (since: number): number => (performance.now() - since) / 1_000;

async function clearAll(edge: Edge, stateDir: string, figures: Figures): Promise<void> {
  const took: number[] = [];
  const busy = cpuMsOf(edge.central.pid);
  for (let no = 0; no < clears; no++) {
    const { status, body } = await edge.api.post(
      `/clear-accelerator-cache/${fleetDomain}/?wait=0`,
      {
        url_path_patterns: [`path:"page ${no}"`],
      },
    );
    if (status !== 200) throw new Error(`clear: ${status} ${JSON.stringify(body)}`);
    const { clear_id: id } = body as { readonly clear_id: string };
    took.push(...(await until("all have receipted", () => receiptTimes(stateDir, id), waitMs)));
  }
  figures.add(`a clear receipted by all, ${clears} of them: p50`, percentile(took, 0.5), "ms");
  figures.add("p99", percentile(took, 0.99), "ms", { most: 3_000 });
  figures.add("the last one", Math.max(...took), "ms");
  const cpuMs = (cpuMsOf(edge.central.pid) - busy) / clears;
  figures.add("central's processor time for each clear, all told", cpuMs, "ms");
}

/** Of each deployment, from the clear to its receipt, as central noted them; undefined until all are there. */
function receiptTimes(stateDir: string, clearId: string): readonly number[] | undefined {
  const db = openSqlite(join(stateDir, "central.db"), { sync: "normal", readonly: true });
  try {
    const rows = db
      .prepare<[string], { given: string; received: string }>(
        `SELECT c.when_created AS given, r.when_received AS received FROM clears c
         JOIN clear_deployments d ON d.clear_id = c.id
         JOIN receipts r ON r.deployment_site_id = d.deployment_site_id AND r.seq = d.seq AND r.phase = 'applied'
         WHERE c.id = ?`,
      )
      .all(clearId);
    if (rows.length < sizes.sites) return undefined;
    return rows.map(({ given, received }) => Date.parse(received) - Date.parse(given));
  } finally {
    db.close();
  }
}

async function restart(
  edge: Edge,
  fleet: LightFleet,
  all: () => Promise<boolean>,
  figures: Figures,
): Promise<void> {
  const snapshots = fleet.snapshots;
  await edge.central.terminate();
  const began = performance.now();
  await edge.central.restart();
  figures.add("central is back after", seconds(began), "s");
  const back = performance.now();
  // What was said before the end is no news.
  await until("some are missing", () => fleet.connected < sizes.sites, waitMs).catch(
    () => undefined,
  );
  await until("all are connected again", all, waitMs);
  figures.add("all are connected again, from then, in", seconds(back), "s", { most: 60 });
  figures.add("snapshots that took", fleet.snapshots - snapshots, "", { most: 0 });
  const failed = [...fleet.failures().values()].reduce((sum, count) => sum + count, 0);
  figures.add("links that failed otherwise than by its absence", failed, "", { most: 0 });
}

async function comparePlainReads(
  edge: Edge,
  stateDir: string,
  token: string,
  figures: Figures,
  say: (line: string) => void,
): Promise<void> {
  const [port = 0] = await freePorts(1);
  const copy = join(edge.dir, "bare.db");
  copyFileSync(join(stateDir, "central.db"), copy);
  using bare = startProcess("bare-fastify.ts", copy, String(port));
  const headers = { authorization: `Token ${token}` };
  const bareUrl = `http://127.0.0.1:${port}`;
  await until(
    "the bare route answers",
    async () => {
      const { status } = await fetch(`${bareUrl}/user-profile/1/`, { headers });
      return status === 200;
    },
    waitMs,
  );
  figures.head("plain reads, one user's profile, 16 connections");
  // In turns, so that both meet the same neighbours.
  const options = { headers, connections: 16, seconds: 3 };
  const ratios: number[] = [];
  const costs: number[] = [];
  for (let round = 0; round < 3; round++) {
    const path = "/presentation-api/v1/user-profile/1/";
    const bareBusy = cpuMsOf(bare.child.pid ?? 0);
    const other = await measure(bareUrl, "/user-profile/1/", options);
    const bareMs = cpuMsOf(bare.child.pid ?? 0) - bareBusy;
    const busy = cpuMsOf(edge.central.pid);
    const own = await measure(`http://127.0.0.1:${edge.ports.central}`, path, options);
    const ownMs = cpuMsOf(edge.central.pid) - busy;
    say(show("fastify, bare", other, other));
    say(show("central", own, other));
    ratios.push(own.perSecond / other.perSecond);
    costs.push(bareMs / other.perSecond / (ownMs / own.perSecond));
  }
  figures.add("central beside the bare route, median", percentile(ratios, 0.5), "×", {
    least: 0.5,
  });
  figures.add("and by the processor time of a request", percentile(costs, 0.5), "×");
}
