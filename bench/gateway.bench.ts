// The purge gateway under load: five real agents are asked for 1,000 purges a second, each for one page at one agent, while visitors fill every cache. Counted are
// the clears that central orders, against one for each purge; afterwards no agent may serve a page that is older than its last purge.
//
//   --rate N       purges a second of all agents together, 1,000
//   --seconds N    10

import { Agent } from "node:http";
import { parseArgs } from "node:util";
import {
  AgentsOfOneSite,
  domain,
  readPage,
  type ServingAgent,
} from "../test/support/agents-of-one-site.ts";
import { visit, type Edge } from "../test/support/edge.ts";
import type { PageVersions } from "../test/support/page-versions.ts";
import { until } from "../test/support/until.ts";

const agentsCount = 5;
const pages = 500;
/** Visitors' requests a second and agent, while purges come. */
const visitorsRate = 20;
/** The longest time in which the last purges reach every agent. */
const settleMs = 120_000;
/** The time between two steps of the load. */
const stepMs = 20;

type Target = ServingAgent & { readonly keeping: Agent };

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const options = { rate: { type: "string" }, seconds: { type: "string" } } as const;
  const { values } = parseArgs({ args: [...args], options });
  const rate = Number(values.rate ?? 1_000);
  const seconds = Number(values.seconds ?? 10);
  await using stack = new AsyncDisposableStack();
  const { edge, origin, agents } = stack.use(await AgentsOfOneSite.start(agentsCount, pages));
  const targets = agents.map((one): Target => {
    const keeping = new Agent({ keepAlive: true, maxSockets: 64 });
    stack.defer(() => keeping.destroy());
    return { ...one, keeping };
  });
  await staleOf(targets, origin); // Fills the caches.
  const load = await purge(targets, origin, { rate, seconds });
  const ended = performance.now();
  await until(
    "every purge is told, and every clear applied",
    async () => (await sumOf(targets, queued)) === 0 && (await isApplied(edge)),
    settleMs,
  );
  const settledMs = performance.now() - ended;
  const stale = await staleOf(targets, origin);
  const orders = await valueOf(edge.ports.central, ordered);
  const local = await sumOf(targets, cleared);
  const { tookMs, failed, spanMs } = load;
  const sent = tookMs.length;
  const perS = (count: number): string => `${(count / (spanMs / 1_000)).toFixed(1)}/s`;
  say(`purges                          ${sent}, ${perS(sent)}; ${failed} not answered 200`);
  say(
    `answered                        p50 ${share(tookMs, 0.5)} ms, p99 ${share(tookMs, 0.99)} ms`,
  );
  say(`clears on agents                ${local}, ${perS(local)}`);
  const purgesEach = (sent / Math.max(1, orders)).toFixed(1);
  say(`orders of central               ${orders}, ${perS(orders)}; one for ${purgesEach} purges`);
  say(`in force everywhere             ${settledMs.toFixed(0)} ms after the last answer`);
  say(`stale afterwards                ${stale} of ${pages * targets.length} answers`);
  if (stale > 0 || failed > 0) throw new Error("a purge was lost");
}

const queued = /^accel_agent_purges_queued (\d+)/gm;
const cleared = /^accel_agent_purge_clears_total\{[^}]*\} (\d+)/gm;
const ordered = /^accel_central_purges_total\{outcome="ordered"\} (\d+)/gm;

type Load = {
  readonly tookMs: readonly number[];
  readonly failed: number;
  readonly spanMs: number;
};

/** Changes pages and purges each at one agent, at a steady rate, while visitors ask for pages everywhere. */
async function purge(
  targets: readonly Target[],
  origin: PageVersions,
  { rate, seconds }: { readonly rate: number; readonly seconds: number },
): Promise<Load> {
  const began = performance.now();
  const tookMs: number[] = [];
  const working: Promise<unknown>[] = [];
  let failed = 0;
  let visited = 0;
  const one = async (no: number): Promise<void> => {
    const { port, keeping } = targetAt(targets, no);
    const page = Math.floor(Math.random() * pages);
    origin.change(page);
    const sent = performance.now();
    const options = { method: "PURGE", host: domain, userAgent: "WordPress/6.4", agent: keeping };
    const status = await visit(port, `/page/${page}`, options).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status !== 200) failed++;
    tookMs.push(performance.now() - sent);
  };
  for (let sent = 0; sent < rate * seconds;) {
    const elapsedS = (performance.now() - began) / 1_000;
    for (; sent < Math.min(rate * elapsedS, rate * seconds); sent++) working.push(one(sent));
    for (; visited < visitorsRate * targets.length * elapsedS; visited++) {
      const target = targetAt(targets, visited);
      working.push(read(target, Math.floor(Math.random() * pages)));
    }
    await new Promise((resolve) => setTimeout(resolve, stepMs));
  }
  await Promise.all(working);
  return { tookMs, failed, spanMs: performance.now() - began };
}

function targetAt(targets: readonly Target[], no: number): Target {
  const target = targets[no % targets.length];
  if (target === undefined) throw new RangeError("no agents");
  return target;
}

const read = (target: Target, no: number): Promise<number> =>
  readPage(target, no, { agent: target.keeping });

/** Returns how many pages are older at some agent than they are at the origin. */
async function staleOf(targets: readonly Target[], origin: PageVersions): Promise<number> {
  let stale = 0;
  for (let no = 0; no < pages; no++) {
    const seen = await Promise.all(targets.map(async (target) => read(target, no)));
    stale += seen.filter((version) => version !== origin.of(no)).length;
  }
  return stale;
}

async function valueOf(port: number, pattern: RegExp): Promise<number> {
  let sum = 0;
  for (const path of ["/metrics", "/metrics/deployment"]) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    if (!answer.ok) continue;
    for (const [, value] of (await answer.text()).matchAll(pattern)) sum += Number(value);
  }
  return sum;
}

async function sumOf(targets: readonly Target[], pattern: RegExp): Promise<number> {
  const values = await Promise.all(targets.map(async (one) => valueOf(one.metricsPort, pattern)));
  return values.reduce((sum, value) => sum + value, 0);
}

type Clears = readonly { readonly deployments: readonly { readonly state: string }[] }[];

/** Whether every agent has proved every clear that central lists. */
async function isApplied({ api }: Edge): Promise<boolean> {
  const { status, body } = await api.get(`/clear-accelerator-cache/${domain}/?limit=1000`);
  if (status !== 200) throw new Error(JSON.stringify(body));
  const list = (Array.isArray(body) ? body : ((body as { items?: Clears }).items ?? [])) as Clears;
  return list.every(({ deployments }) => deployments.every(({ state }) => state === "applied"));
}

function share(values: readonly number[], part: number): string {
  const sorted = values.toSorted((one, other) => one - other);
  return (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(0);
}
