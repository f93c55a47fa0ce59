// A database of request logs that is stopped under load, and comes back: central as a program with its store on another PostgreSQL, two agents as programs, visitors, and a
// customer who clears all the time. What central answers meanwhile is noted, and afterwards every record is counted.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { statesOf } from "./clear-states.ts";
import { CustomerScript, domain } from "./customer-script.ts";
import { Edge, visit, type ApiAnswer } from "./edge.ts";
import { startFurtherAgent } from "./further-agent.ts";
import { judgeLogsAt } from "./log-engine-kill.ts";
import { BalanceWatch, isDrained, parseSums, type Sums } from "./log-oracle-balance.ts";
import { startOrigin } from "./origin.ts";
import { PostgresServer } from "./postgres-server.ts";
import { Program } from "./process.ts";
import { SteadyVisitors, type VisitorCount } from "./steady-visitors.ts";
import { until } from "./until.ts";

/** Receipts ride the channel; a machine may be busy with other tests. */
const provedWithinMs = 180_000;
/** Agents come again after a minute at most, and ship some thousand records a second. */
const drainedWithinMs = 600_000;
const healthChecksPerSecond = 4;

export type AwayRun = {
  readonly bin: string;
  readonly awayMs: number;
  /** Visitors of each host. */
  readonly perSecond: number;
  /** A wait between two clears, beside that for their receipts. */
  readonly clearEveryMs: number;
  readonly say?: (line: string) => void;
};

/** An order of the customer and how long it took until both hosts had proved it. */
export type ProvedOrder = { readonly isWhileAway: boolean; readonly tookMs: number };

export type AwayOutcome = {
  readonly orders: readonly ProvedOrder[];
  readonly health: VisitorCount;
  readonly visitors: readonly VisitorCount[];
  /** What questions about logs and numbers were answered meanwhile. */
  readonly asked: readonly ApiAnswer[];
  /** What central told operators meanwhile. */
  readonly told: {
    readonly statusText: string;
    readonly metrics: string;
    readonly warnings: readonly unknown[];
  };
  /** Records that waited at both hosts before, at the most while it was away, and how long they took to go afterwards. */
  readonly spooled: {
    readonly before: number;
    readonly most: number;
    readonly mostBytes: number;
    readonly drainedMs: number;
  };
  readonly agents: readonly Sums[];
  /** What contradicted an agent's own balance at any moment. */
  readonly violations: readonly string[];
  /** At the database: the sum of the marks, and records of the path that the visitors asked for. */
  readonly stored: { readonly marks: number; readonly visits: number };
  /** Requests of the domain by `/analytics/`, and records of the domain at the database. */
  readonly counted: { readonly analytics: number; readonly records: number };
};

const path = "/page/same";
const clearedPath = "/page/cleared";

type Host = { readonly port: number; readonly metricsPort: number; readonly watch: BalanceWatch };

/** A part of everything: central, a site with two hosts, a customer, two servers of PostgreSQL. */
class Scene implements AsyncDisposable {
  readonly edge: Edge;
  readonly logServer: PostgresServer;
  readonly hosts: readonly Host[];
  readonly #owned: AsyncDisposable;

  private constructor(
    edge: Edge,
    logServer: PostgresServer,
    hosts: readonly Host[],
    owned: AsyncDisposable,
  ) {
    this.edge = edge;
    this.logServer = logServer;
    this.hosts = hosts;
    this.#owned = owned;
  }

  static async open(bin: string): Promise<Scene> {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await startOrigin());
    const [storeServer, logServer] = [
      stack.use(await PostgresServer.start(bin, { isDurable: true })),
      stack.use(await PostgresServer.start(bin, { isDurable: true })),
    ];
    const edge = stack.use(await Edge.prepare());
    edge.changeCentralSettings({
      store: { url: await urlOf(storeServer, "store") },
      request_logs: { url: await urlOf(logServer, "logs") },
    });
    await edge.startCentral();
    const script = new CustomerScript(edge, origin.url, "away");
    await script.enrol();
    await edge.startAgent();
    const site = siteOf(edge, script.siteId);
    const further = stack.use(await startFurtherAgent(edge, site, "further"));
    for (const { name, run } of script.steps().slice(0, 2))
      await run().catch((error: unknown) => {
        throw new Error(`step ${name}\n${edge.central.said.slice(-4_000)}`, { cause: error });
      });
    const watched = ([port, metricsPort]: readonly [number, number]): Host => {
      const metrics = async (): Promise<string> => metricsAt({ metricsPort });
      const watch = stack.use(new BalanceWatch(metrics, () => metricsPort));
      return { port, metricsPort, watch };
    };
    const hosts = [
      [edge.ports.visitors, edge.ports.metrics] as const,
      [further.port, further.metricsPort] as const,
    ].map(watched);
    for (const { port } of hosts)
      await until("it serves", async () => (await pageAt(port, clearedPath)).status === 200);
    return new Scene(edge, logServer, hosts, stack.move());
  }

  /** Records that wait at the hosts. */
  get spooled(): number {
    return this.hosts.reduce((sum, { watch }) => sum + waitingOf(watch.last), 0);
  }

  async spooledBytes(): Promise<number> {
    const texts = await Promise.all(this.hosts.map(metricsAt));
    return texts.reduce((sum, text) => {
      const [, bytes = 0] = /^accel_agent_log_spool_bytes (\S+)$/m.exec(text) ?? [];
      return sum + Number(bytes);
    }, 0);
  }

  /** Clears a page that both hosts have, and returns how long they took to prove it. Throws where one did not clear it. */
  async clear(): Promise<number> {
    const { api } = this.edge;
    const bodies = await this.#clearedBodies();
    const beganMs = performance.now();
    const { status, body } = await api.post(`/clear-accelerator-cache/${domain}/?wait=20`, {
      url_path_patterns: ["path:cleared"],
    });
    if (status >= 300) throw new Error(`a clear is answered ${status}: ${JSON.stringify(body)}`);
    const id = String(Object(body)["clear_id"]);
    await until(
      `both have proved ${id}`,
      async () => {
        const { body: now } = await api.get(`/clear-accelerator-cache/${domain}/${id}/`);
        return statesOf(now).filter((state) => state === "applied").length === 2;
      },
      provedWithinMs,
    );
    const tookMs = performance.now() - beganMs;
    const after = await this.#clearedBodies();
    if (after.some((text, at) => text === bodies[at]))
      throw new Error(`the page of before is served after clear ${id}`);
    return tookMs;
  }

  async #clearedBodies(): Promise<readonly string[]> {
    return Promise.all(this.hosts.map(async ({ port }) => (await pageAt(port, clearedPath)).text));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}

async function metricsAt({ metricsPort }: Pick<Host, "metricsPort">): Promise<string> {
  return (await fetch(`http://127.0.0.1:${metricsPort}/metrics/deployment`)).text();
}

/** What the hosts say now. */
async function sumsOf(hosts: readonly Host[]): Promise<readonly Sums[]> {
  const texts = await Promise.all(hosts.map(metricsAt));
  return texts.map((text) => {
    const sums = parseSums(text);
    if (sums === undefined) throw new Error("a host tells no sums");
    return sums;
  });
}

async function urlOf(server: PostgresServer, name: string): Promise<string> {
  await server.run("postgres", `CREATE DATABASE ${name} TEMPLATE template0`);
  const { host, port } = server.place(name);
  return `postgres://accel@localhost:${port}/${name}?host=${host}`;
}

function siteOf(edge: Edge, id: number) {
  const settings: unknown = parse(readFileSync(join(edge.dir, "agent.yaml"), "utf8"));
  const secret16 = readFileSync(join(edge.dir, "secret16"), "utf8");
  return { id, name16: String(Object(settings)["name16"]), secret16 };
}

async function pageAt(port: number, at: string): Promise<{ status: number; text: string }> {
  const { status, body } = await visit(port, at, { host: domain });
  return { status, text: body.toString() };
}

const waitingOf = (sums: Sums | undefined): number =>
  sums === undefined ? 0 : sums.spooled + sums.inMemory;

/** A customer who clears again and again. */
class Clearing implements AsyncDisposable {
  readonly orders: ProvedOrder[] = [];
  isAway = false;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;
  #failure: unknown;

  constructor(scene: Scene, everyMs: number) {
    this.#running = this.#run(scene, everyMs).catch((error: unknown) => {
      this.#failure = error;
    });
  }

  async #run(scene: Scene, everyMs: number): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const isWhileAway = this.isAway;
      this.orders.push({ isWhileAway, tookMs: await scene.clear() });
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  }

  /** Resolves when so many were proved. */
  async reach(count: number): Promise<void> {
    await until(`${count} clears`, () => this.orders.length >= count || this.#hasFailed(), 600_000);
    if (this.#hasFailed()) throw this.#failure;
  }

  #hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Resolves when the last one is proved. Throws what one failed of. */
  async end(): Promise<readonly ProvedOrder[]> {
    this.#ending.abort();
    await this.#running;
    if (this.#hasFailed()) throw this.#failure;
    return this.orders;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }
}

export async function runLogEngineAway(run: AwayRun): Promise<AwayOutcome> {
  const { awayMs, perSecond, clearEveryMs, say = () => undefined } = run;
  await using stack = new AsyncDisposableStack();
  const scene = stack.use(await Scene.open(run.bin));
  const { edge, logServer, hosts } = scene;
  const visitors: SteadyVisitors[] = [];
  for (const { port } of hosts) {
    const { text: body } = await pageAt(port, path);
    visitors.push(
      new SteadyVisitors({ host: "127.0.0.1", port, name: domain, path, body, perSecond }),
    );
  }
  stack.defer(async () => void (await Promise.all(visitors.map(async (one) => one.end()))));
  const readyz = await fetch(`${edge.api.origin}/readyz`);
  const health = new SteadyVisitors({
    host: "127.0.0.1",
    port: edge.ports.central,
    name: "127.0.0.1",
    path: "/readyz",
    body: await readyz.text(),
    perSecond: healthChecksPerSecond,
  });
  stack.defer(async () => void (await health.end()));
  const clearing = stack.use(new Clearing(scene, clearEveryMs));
  await clearing.reach(2);
  await until("records arrive", async () => {
    const rows = await logServer.run("logs", `SELECT 1 FROM record WHERE ${isVisit} LIMIT 1`);
    return rows.length > 0;
  });

  const before = scene.spooled;
  say(`${before} records wait; the database of request logs is stopped`);
  clearing.isAway = true;
  const beganMs = performance.now();
  await logServer.end("immediate");
  await until("central warns", async () => (await warningsAt(edge)).length > 0);
  const asked = await askForLogs(edge);
  const told = await toldAt(edge);
  let most = 0;
  let mostBytes = 0;
  await until(
    "it was away for so long",
    async () => {
      most = Math.max(most, scene.spooled);
      mostBytes = Math.max(mostBytes, await scene.spooledBytes());
      return performance.now() - beganMs >= awayMs;
    },
    awayMs + provedWithinMs,
  );
  const askedLast = await askForLogs(edge);
  await clearing.reach(clearing.orders.length + 1);
  clearing.isAway = false;
  say(`${most} records wait in ${mostBytes} bytes; it is started again`);
  await logServer.begin();
  const backMs = performance.now();
  await clearing.reach(clearing.orders.length + 2);

  const orders = await clearing.end();
  const counts = await Promise.all(visitors.map(async (one) => one.end()));
  await until(
    "all records are at central",
    () => hosts.every(({ watch }) => watch.last !== undefined && waitingOf(watch.last) <= canaries),
    drainedWithinMs,
  );
  const drainedMs = performance.now() - backMs;
  await until("central warns no more", async () => (await warningsAt(edge)).length === 0);
  return {
    orders,
    health: await health.end(),
    visitors: counts,
    asked: [...asked, ...askedLast],
    told,
    spooled: { before, most, mostBytes, drainedMs },
    ...(await balanceOf(scene)),
  };
}

/** A canary of each host may be on its way. */
const canaries = 1;
const isVisit = `line LIKE '%"${path}"%'`;

async function warningsAt(edge: Edge): Promise<readonly unknown[]> {
  const status = await statusAt(edge, "--json");
  const { warnings } = Object(JSON.parse(status));
  return Array.isArray(warnings) ? warnings : [];
}

async function statusAt(edge: Edge, ...args: readonly string[]): Promise<string> {
  await using command = await Program.start([
    "central",
    "status",
    "--state-dir",
    join(edge.dir, "central"),
    ...args,
  ]);
  const exit = await command.exited();
  if (exit !== 0) throw new Error(`accel-central status ends with ${exit}: ${command.said}`);
  return command.said;
}

async function toldAt(edge: Edge): Promise<AwayOutcome["told"]> {
  return {
    statusText: await statusAt(edge),
    metrics: await (await fetch(`${edge.api.origin}/metrics`)).text(),
    warnings: await warningsAt(edge),
  };
}

/** All ways in which a customer asks for logs and numbers. */
async function askForLogs({ api }: Edge): Promise<readonly ApiAnswer[]> {
  const sites = (await api.get("/deployment-site/")).body;
  const id = Number(Object(Array.isArray(sites) ? sites[0] : undefined)["id"]);
  const answers: ApiAnswer[] = [];
  for (const one of [
    `/incominglogs/?domain=${domain}&deployment_id=${id}`,
    `/requests/${domain}/`,
    `/analytics/${domain}/`,
  ])
    answers.push(await api.get(one));
  return answers;
}

/** Asks everything at rest, until a moment at which no canary is on its way. */
async function balanceOf(
  scene: Scene,
): Promise<Pick<AwayOutcome, "agents" | "violations" | "stored" | "counted">> {
  const { edge, hosts, logServer } = scene;
  const { agents, marks } = await until(
    "a moment of rest",
    async () => {
      const before = await sumsOf(hosts);
      if (!before.every(isDrained)) return false;
      await judgeLogsAt(logServer, "logs");
      const [row] = await logServer.run("logs", "SELECT sum(mark)::float8 AS marks FROM lane");
      const after = await sumsOf(hosts);
      const isSame = after.every(({ accepted }, at) => accepted === before[at]?.accepted);
      return isSame && { agents: after, marks: Number(Object(row)["marks"]) };
    },
    provedWithinMs,
  );
  const [row] = await logServer.run(
    "logs",
    `SELECT count(*) FILTER (WHERE ${isVisit})::float8 AS visits, count(*)::float8 AS records
     FROM record JOIN series ON series.id = series_id WHERE domain = '${domain}'`,
  );
  const { visits, records } = Object(row);
  const analytics = await until(
    "all is counted",
    async () => {
      const { body } = await edge.api.get(`/analytics/${domain}/?step=hour`);
      const requests = Number(Object(Object(body)["totals"])["requests"]);
      return requests === records && requests;
    },
    provedWithinMs,
  );
  return {
    agents,
    violations: hosts.flatMap(({ watch }) => watch.violations),
    stored: { marks, visits: Number(visits) },
    counted: { analytics, records: Number(records) },
  };
}
