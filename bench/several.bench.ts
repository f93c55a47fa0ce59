// Light agents on several centrals at one PostgreSQL, behind HAProxy as docs/operations/cluster.md has it, with request logs in PostgreSQL and a bucket of S3, all on this
// machine: how soon a clear is receipted by all, how soon all are back when a central is killed and when it is stopped, and what each part takes of the processors.
// `--agents 1000,2500,5000`, `--centrals 2,4`. The agents are processes of their own and go through several addresses, and where they are many through several HAProxies. It
// ends by itself: what is not there in time is said.

import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { createSealer, openKeyFile } from "../src/base/seal.ts";
import { connectPostgresStore } from "../src/central/store/engine/postgres-store.ts";
import { join } from "node:path";
import { haproxyConfig } from "../test/support/documented-proxy.ts";
import { freePorts } from "../test/support/free-ports.ts";
import { postgresBin } from "../test/support/postgres-server.ts";
import { startProxy } from "../test/support/proxy-program.ts";
import { SeveralCentrals } from "../test/support/several-centrals.ts";
import { until } from "../test/support/until.ts";
import { Figures, percentile } from "./support/figures.ts";
import { fillWithFleet, fleetDomain } from "./support/fleet-seed.ts";
import { LightFleet } from "./support/light-fleet.ts";
import { cpuMsOf, cpuMsOfTree } from "./support/processor-time.ts";

const clears = 5;
/** Of an HAProxy, which has two connections for each agent: its open files, and the ports of a loopback address, bound it. */
const agentsOfProxy = 9_000;
const connectLeastMs = 240_000;
/** On two cores that all parts share; agents that come for the first time cost the most. */
const connectMsOfAgent = 42;
const clearMs = 60_000;
const backMs = 120_000;
/** HAProxy looks every 2 s, and takes a central back at once. */
const checkedMs = 3_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const bin = postgresBin();
  if (bin === undefined) throw new Error("it needs PostgreSQL 15: apt install postgresql");
  const figures = new Figures(say);
  for (const agents of listOf(args, "--agents", [1_000, 2_500, 5_000]))
    for (const centrals of listOf(args, "--centrals", [2, 4])) {
      figures.head(`${agents.toLocaleString("en")} agents, ${centrals} centrals`);
      await measure(bin, agents, centrals, figures).catch((error: unknown) =>
        say(`given up: ${String(error)}`),
      );
      const load = loadavg().map((one) => one.toFixed(1));
      say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
    }
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

function listOf(args: readonly string[], name: string, meant: readonly number[]) {
  const at = args.indexOf(name);
  return at < 0 ? meant : (args[at + 1]?.split(",").map(Number) ?? meant);
}

async function measure(
  bin: string,
  agents: number,
  count: number,
  figures: Figures,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const several = stack.use(await SeveralCentrals.start(bin, count));
  const sealer = createSealer(await openKeyFile(join(several.dir, "central.key")));
  const { token, sites } = await seed(several, sealer, agents);
  const proxies = await startProxies(several, Math.ceil(agents / agentsOfProxy), stack);
  const pids = proxies.map(({ pid }) => pid);
  stack.use(endedWithUs(several, pids));
  const urls = proxies.flatMap((proxy) => proxy.urls);
  const parts = new Parts(several, pids, figures);
  const fleet = stack.use(new LightFleet(urls, sites, urls.length));
  parts.fleet = fleet;
  const areAll = async (): Promise<boolean> => fleet.connected === agents;
  await parts.timed("all are connected, with a snapshot each, in", async () =>
    until("all are connected", areAll, Math.max(connectLeastMs, agents * connectMsOfAgent)),
  );
  const front = `http://127.0.0.1:${proxies[0]?.port}`;
  await clearAll(several, parts, { front, token, agents }, figures);
  const [victim, next] = several.all;
  if (victim === undefined || next === undefined) throw new Error("it takes two");
  const snapshots = fleet.snapshots;
  const isSome = async (): Promise<boolean> => fleet.connected < agents;
  await victim.program.kill();
  await parts.timed(
    "one is killed: all are back in",
    async () => {
      await until("some are missing", isSome, 10_000).catch(() => undefined);
      await until("all are back", areAll, backMs);
    },
    60,
  );
  await clearAll(several, parts, { front, token, agents }, figures);
  await victim.program.restart();
  await sleep(checkedMs);
  const stopping = next.program.terminate();
  await parts.timed(
    "another is stopped: all are back in",
    async () => {
      await stopping;
      await until("all are back", areAll, backMs);
    },
    60,
  );
  figures.add("snapshots that all of this took", fleet.snapshots - snapshots, "", { most: 0 });
  for (const [what, failed] of fleet.failures()) figures.head(`failed: ${failed} × ${what}`);
}

type Proxy = {
  readonly pid: number;
  readonly port: number;
  /** Where agents reach it: each loopback address has ports of its own. */
  readonly urls: readonly string[];
};

/** Starts HAProxies, each with two addresses of its own beside the common one, for as many processes of agents: each starts 400 a second. */
async function startProxies(
  several: SeveralCentrals,
  count: number,
  stack: AsyncDisposableStack,
): Promise<readonly Proxy[]> {
  const proxies: Proxy[] = [];
  for (const [no, port] of (await freePorts(count)).entries()) {
    const addresses = [2, 3].map((last) => `127.0.${no}.${last}`);
    const { pid } = stack.use(
      await startProxy(
        [port],
        () => haproxyConfig(port, several.all, ["127.0.0.1", ...addresses]),
        (_, path) => ["haproxy", "-db", "-f", path],
      ),
    );
    proxies.push({ pid, port, urls: addresses.map((address) => `http://${address}:${port}`) });
  }
  return proxies;
}

/** Where this process is ended from outside, what it started ends too. */
function endedWithUs(several: SeveralCentrals, proxyPids: readonly number[]): Disposable {
  const end = (): void => {
    const pids = [
      ...several.all.map(({ program }) => program.pid),
      several.server.pid,
      ...proxyPids,
    ];
    for (const pid of pids.filter((one) => one > 0)) endProcess(pid);
  };
  process.once("exit", end);
  return { [Symbol.dispose]: () => void process.removeListener("exit", end) };
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGINT");
  } catch {
    // It has ended before.
  }
}

async function seed(
  several: SeveralCentrals,
  sealer: ReturnType<typeof createSealer>,
  sites: number,
): ReturnType<typeof fillWithFleet> {
  const place = several.server.place("central");
  await using store = connectPostgresStore({ place, random: Math.random });
  return fillWithFleet(store, sealer, { customers: 10, domains: 20, sites });
}

type Asked = { readonly front: string; readonly token: string; readonly agents: number };

async function clearAll(
  several: SeveralCentrals,
  parts: Parts,
  { front, token, agents }: Asked,
  figures: Figures,
): Promise<void> {
  const took: number[] = [];
  await parts.timed(`${clears} clears, one after the other, in`, async () => {
    for (let no = 0; no < clears; no++) {
      const path = `/presentation-api/v1/clear-accelerator-cache/${fleetDomain}/?wait=0`;
      const answer = await fetch(front + path, {
        method: "POST",
        headers: { authorization: `Token ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ url_path_patterns: [`path:"page ${no}"`] }),
      });
      const said: unknown = await answer.json();
      if (answer.status !== 200) throw new Error(`clear: ${answer.status}`);
      const id = String(Object(said)["clear_id"]);
      took.push(
        ...(await until("all receipts", async () => receipted(several, id, agents), clearMs)),
      );
    }
  });
  figures.add("a clear receipted by all: p50", percentile(took, 0.5), "ms");
  figures.add("p99", percentile(took, 0.99), "ms", { most: 3_000 });
  figures.add("the last one", Math.max(...took), "ms");
}

/** Of each deployment, from the clear to its receipt, as the centrals noted them; undefined until all are there. */
async function receipted(
  several: SeveralCentrals,
  clearId: string,
  agents: number,
): Promise<readonly number[] | undefined> {
  const rows = await several.run(`
    SELECT c.when_created AS given, r.when_received AS received FROM clears c
    JOIN clear_deployments d ON d.clear_id = c.id
    JOIN receipts r ON r.deployment_site_id = d.deployment_site_id AND r.seq = d.seq AND r.phase = 'applied'
    WHERE c.id = '${clearId}'
  `);
  if (rows.length < agents) return undefined;
  return rows.map((row) => Date.parse(Object(row).received) - Date.parse(Object(row).given));
}

/** What the parts take of the processors while something lasts. */
class Parts {
  readonly #several: SeveralCentrals;
  readonly #proxyPids: readonly number[];
  readonly #figures: Figures;
  fleet: LightFleet | undefined;

  constructor(several: SeveralCentrals, proxyPids: readonly number[], figures: Figures) {
    this.#several = several;
    this.#proxyPids = proxyPids;
    this.#figures = figures;
  }

  async timed(name: string, action: () => Promise<unknown>, mostS?: number): Promise<void> {
    const before = this.#cpu();
    const began = performance.now();
    await action();
    const s = (performance.now() - began) / 1_000;
    const after = this.#cpu();
    this.#figures.add(name, s, "s", mostS === undefined ? undefined : { most: mostS });
    const shares = new Map<string, number>();
    for (const [key, { part, ms }] of after) {
      const share = ms - (before.get(key)?.ms ?? 0);
      shares.set(part, (shares.get(part) ?? 0) + share / 1_000);
    }
    const told = [...shares].map(([part, share]) => `${part} ${share.toFixed(1)}`);
    this.#figures.head(
      `  of ${(s * availableParallelism()).toFixed(1)} s of processors: ${told.join(", ")}`,
    );
  }

  /** By process: one that was started again counts from its start, and one that has ended meanwhile does not count. */
  #cpu(): ReadonlyMap<string, { readonly part: string; readonly ms: number }> {
    const { all, server } = this.#several;
    const parts = [
      ...all.map(({ program: { pid } }) => ({ part: "centrals", pid, ms: cpuMsOf(pid) })),
      { part: "PostgreSQL", pid: server.pid, ms: cpuMsOfTree(server.pid) },
      ...this.#proxyPids.map((pid) => ({ part: "HAProxy", pid, ms: cpuMsOf(pid) })),
      { part: "agents", pid: 0, ms: this.fleet?.cpuMs() ?? 0 },
    ];
    return new Map(parts.filter(({ ms }) => ms > 0).map((one) => [`${one.part} ${one.pid}`, one]));
  }
}
