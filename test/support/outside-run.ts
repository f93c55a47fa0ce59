// Both programs as their users have them, watched from outside: four agents on three sites of two customers, a real Prometheus with the configuration that central
// gives, visitors from a real access log. Meanwhile customers clear, mark and activate, one agent and central are restarted, and another agent is killed. Every
// status, metric, receipt and log line is compared with what was sent.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readAccessLog, type LoggedRequest } from "./access-log.ts";
import { startPrometheus, type Prometheus } from "./prometheus.ts";
import { until } from "./until.ts";
import {
  checkAgentMetrics,
  checkIsolation,
  checkLogs,
  checkPrometheus,
  checkServiceStatus,
  checkStatusCommands,
  originRequestsTold,
} from "./outside-checks.ts";
import { activate, clearAndCompare, markAndCompare } from "./outside-customers.ts";
import { Ledger } from "./outside-ledger.ts";
import { createRandom, type Random } from "./outside-random.ts";
import { OutsideScene, tag, type Customer, type OutsideAgent } from "./outside-scene.ts";
import { Visitors } from "./outside-visitors.ts";

export const outsideLog = join(
  import.meta.dirname,
  "../../../shared/data/logs/semicomplete_apache_combined_10k.log",
);

export type OutsideOptions = {
  readonly lengthMs: number;
  /** Of traffic between two comparisons. */
  readonly cycleMs: number;
  readonly requestsPerSecond: number;
  readonly seed: number;
};
export type OutsideCounts = {
  readonly requests: number;
  readonly comparisons: number;
  readonly differences: readonly string[];
  readonly unanswered: number;
};

export async function runOutside(
  { lengthMs, cycleMs, requestsPerSecond, seed }: OutsideOptions,
  say: (line: string) => void,
): Promise<OutsideCounts> {
  const lines = readAccessLog(outsideLog).filter(({ target }) => target.startsWith("/"));
  const random = createRandom(seed);
  await using scene = await OutsideScene.start();
  const ledger = new Ledger();
  using visitors = new Visitors(ledger);
  for (const customer of scene.customers) await activate(ledger, scene, visitors, customer, 0);
  await using stack = new AsyncDisposableStack();
  const watched: { readonly customer: Customer; readonly prometheus: Prometheus }[] = [];
  for (const customer of scene.customers)
    watched.push({ customer, prometheus: stack.use(await watch(ledger, scene, customer)) });

  const found: string[] = [];
  const tell = (): void => {
    for (const difference of ledger.differences.splice(0)) {
      found.push(difference);
      say(`  ${difference}`);
    }
  };
  const began = performance.now();
  const events = eventsOf(scene, ledger, visitors);
  for (let cycle = 1; performance.now() - began < lengthMs; cycle++) {
    await traffic(scene, visitors, lines, random, { cycleMs, requestsPerSecond });
    // Everybody is silent now: what is said must be what was sent.
    for (const agent of scene.agents) await checkAgentMetrics(ledger, agent);
    for (const { customer, prometheus } of watched) {
      await checkPrometheus(ledger, prometheus, customer, scene.agents);
      await clearAndCompare(ledger, scene, visitors, customer, random);
      await markAndCompare(ledger, scene, visitors, customer, cycle);
      await checkServiceStatus(ledger, customer, scene.agents);
      if (cycle % 4 === 0) await activate(ledger, scene, visitors, customer, cycle);
      if (cycle % 10 === 0) await checkLogs(ledger, customer, scene.agents);
    }
    await checkStatusCommands(ledger, scene);
    await checkIsolation(ledger, scene.customers);
    const [next] = events;
    if (next !== undefined && performance.now() - began > next.at * lengthMs) {
      events.shift();
      say(`${next.name} …`);
      await next.happen();
    }
    say(
      `cycle ${cycle}: ${ledger.sent.length} requests, ${ledger.comparisons} comparisons, ${found.length + ledger.differences.length} differences, ${visitors.failures} without an answer`,
    );
    tell();
  }
  for (const customer of scene.customers) {
    await checkLogs(ledger, customer, scene.agents);
    ledger.compare(
      `requests to the origin of ${customer.domain}`,
      await originRequestsTold(scene, customer),
      scene.origin.asked.get(customer.domain) ?? 0,
    );
  }
  tell();
  return {
    requests: ledger.sent.length,
    comparisons: ledger.comparisons,
    differences: found,
    unanswered: visitors.failures,
  };
}

/** A Prometheus with the customer's configuration as central gives it. */
async function watch(
  ledger: Ledger,
  scene: OutsideScene,
  { api, name }: Customer,
): Promise<Prometheus> {
  type Job = { readonly static_configs: readonly { readonly targets: readonly string[] }[] };
  const own = scene.agents.filter(({ customer }) => customer.name === name);
  let jobs: readonly Job[] = [];
  const targets = (): readonly string[] =>
    [...new Set(jobs.flatMap((job) => job.static_configs.flatMap((one) => one.targets)))].sort();
  await until(
    `metrics-conf names every agent of ${name}`,
    async () => {
      const { body } = await api.get(`/metrics-conf/by-deployment-tag/${tag}/`);
      jobs = (body as { readonly metrics_config: readonly Job[] }).metrics_config; // What the specification says of this answer.
      return targets().length === own.length;
    },
    90_000,
  ).catch(() => undefined);
  ledger.compare(
    `metrics-conf of ${name}`,
    targets(),
    own.map(({ metricsPort }) => `127.0.0.1:${metricsPort}`).sort(),
  );
  return startPrometheus(jobs);
}

/** Lines of the log at a fixed rate, each at an agent that chance picks; ends when the last one is answered. */
async function traffic(
  scene: OutsideScene,
  visitors: Visitors,
  lines: readonly LoggedRequest[],
  random: Random,
  { cycleMs, requestsPerSecond }: Pick<OutsideOptions, "cycleMs" | "requestsPerSecond">,
): Promise<void> {
  const began = performance.now();
  const pending = new Set<Promise<unknown>>();
  for (let no = 0; performance.now() - began < cycleMs; no++) {
    const due = (no * 1_000) / requestsPerSecond - (performance.now() - began);
    if (due > 0) await sleep(due);
    const [agent, line] = [random.pick(scene.agents), random.pick(lines)];
    if (agent === undefined || line === undefined) throw new Error("nobody to ask");
    const kind = random.next();
    const one = visitors
      .ask(agent, kind < 0.05 ? `/private${line.target}` : line.target, {
        ip: line.ip,
        method: kind < 0.02 ? "POST" : kind > 0.95 ? "HEAD" : "GET",
        ...(line.userAgent === undefined ? {} : { userAgent: line.userAgent }),
      })
      .catch(() => undefined) // Counted by the visitors themselves.
      .finally(() => pending.delete(one));
    pending.add(one);
  }
  await Promise.all(pending);
}

type Happening = {
  /** Share of the whole time that has passed. */
  readonly at: number;
  readonly name: string;
  readonly happen: () => Promise<void>;
};

function eventsOf(scene: OutsideScene, ledger: Ledger, visitors: Visitors): Happening[] {
  const named = (name: string): OutsideAgent => {
    const agent = scene.agents.find((one) => one.name === name);
    if (agent === undefined) throw new Error(`no agent ${name}`);
    return agent;
  };
  const again = async (agent: OutsideAgent, end: () => Promise<unknown>): Promise<void> => {
    scene.originBefore.set(
      agent.customer.domain,
      (scene.originBefore.get(agent.customer.domain) ?? 0) +
        (await originRequestsTold(scene, agent.customer, agent)),
    );
    visitors.leave(agent);
    await end();
    ledger.restarted(agent.name);
    await agent.program.restart();
  };
  return [
    {
      at: 0.2,
      name: "a2 is restarted",
      happen: () => again(named("a2"), () => named("a2").program.terminate()),
    },
    {
      at: 0.45,
      name: "central is restarted",
      async happen() {
        await scene.edge.central.terminate();
        await scene.edge.central.restart();
      },
    },
    {
      at: 0.7,
      name: "a3 is killed and started",
      happen: () => again(named("a3"), () => named("a3").program.kill()),
    },
  ];
}
