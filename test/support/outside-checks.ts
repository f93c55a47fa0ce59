// What the programs say, asked for as their users ask, beside what the ledger saw. Nothing here looks into a program: only into what it answers.

import { spawnSync } from "node:child_process";
import { until } from "./until.ts";
import { mainFile, node } from "./process.ts";
import type { Prometheus } from "./prometheus.ts";
import {
  multiset,
  multisetDifference,
  settled,
  settleWithinMs,
  type Ledger,
} from "./outside-ledger.ts";
import { tag, type Customer, type OutsideAgent, type OutsideScene } from "./outside-scene.ts";

type Series = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** The text format of Prometheus, as far as our programs write it. */
function parseMetrics(text: string): readonly Series[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
      return {
        name,
        labels: Object.fromEntries(pairs.map(([, key = "", text = ""]) => [key, text])),
        value: Number(value),
      };
    });
}

async function scrape(agent: OutsideAgent, path: string): Promise<readonly Series[]> {
  const response = await fetch(`http://127.0.0.1:${agent.metricsPort}${path}`);
  return parseMetrics(await response.text());
}

const sum = (series: readonly Series[]): number =>
  series.reduce((total, { value }) => total + value, 0);

export async function checkAgentMetrics(ledger: Ledger, agent: OutsideAgent): Promise<void> {
  const { domain } = agent.customer;
  const sums = ledger.since(agent.name);
  const own = (series: readonly Series[], name: string): readonly Series[] =>
    series.filter((one) => one.name === name && one.labels["domain"] === domain);
  const labelled = [...sums.byLabels].sort(([a], [b]) => (a < b ? -1 : 1));
  await settled(ledger, `${agent.name} accel_agent_requests_total`, labelled, async () =>
    own(await scrape(agent, "/metrics/deployment"), "accel_agent_requests_total")
      .map(({ labels, value }): [string, number] => [
        `${labels["domain"]} ${labels["cache"]} ${labels["status"]}`,
        value,
      ])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  const deployment = await scrape(agent, "/metrics/deployment");
  ledger.compare(
    `${agent.name} accel_agent_bytes_sent_total`,
    sum(own(deployment, "accel_agent_bytes_sent_total")),
    sums.bytes,
  );
  ledger.compare(
    `${agent.name} accel_agent_blocked_total`,
    sum(own(deployment, "accel_agent_blocked_total")),
    [...sums.byLabels]
      .filter(([labels]) => labels.endsWith(" blocked 4xx"))
      .reduce((total, [, count]) => total + count, 0),
  );
  const names = (series: readonly Series[]): readonly string[] => [
    ...new Set(series.map(({ name }) => name)),
  ];
  const edge = new Set(names(await scrape(agent, "/metrics")));
  ledger.compare(
    `${agent.name}: names at /metrics and at /metrics/deployment`,
    names(deployment).filter((name) => edge.has(name)),
    [],
  );
}

/** Sums over all jobs of the configuration that central gave: nothing is counted twice, nothing is missing. */
export async function checkPrometheus(
  ledger: Ledger,
  prometheus: Prometheus,
  customer: Customer,
  agents: readonly OutsideAgent[],
): Promise<void> {
  const own = agents.filter((agent) => agent.customer === customer);
  const expected = own.reduce((total, { name }) => total + ledger.since(name).requests, 0);
  await settled(ledger, `Prometheus, requests of ${customer.name}`, expected, async () => {
    const [first] = (await prometheus.query(
      `sum(accel_agent_requests_total{domain="${customer.domain}"})`,
    )) as readonly { readonly value: readonly [number, string] }[];
    return Number(first?.value[1]);
  });
}

type LogLine = {
  readonly response_status: number;
  readonly request_method: string;
  readonly uri_path: string;
  readonly authority: string;
};

/** Every record that a customer can read of one site, walked page by page. */
async function readLogs(customer: Customer, siteId: number): Promise<readonly LogLine[]> {
  const lines: LogLine[] = [];
  let path: string | undefined =
    `/incominglogs/?domain=${customer.domain}&deployment_id=${siteId}&limit=1000`;
  while (path !== undefined) {
    const { body, headers } = await customer.api.get(path);
    const { logs_data: data } = body as {
      readonly logs_data: {
        readonly deployments: readonly {
          readonly deployment_id: number;
          readonly domains: readonly { readonly domain_logs?: readonly LogLine[] }[];
        }[];
      };
    };
    for (const { deployment_id: id, domains } of data.deployments)
      if (id === siteId) for (const { domain_logs: some = [] } of domains) lines.push(...some);
    const next: RegExpExecArray | null = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "");
    path = next?.[1]?.replace(/^.*\/presentation-api\/v1/, "");
  }
  return lines;
}

export async function checkLogs(
  ledger: Ledger,
  customer: Customer,
  agents: readonly OutsideAgent[],
): Promise<void> {
  const siteIds = new Set(agents.filter((a) => a.customer === customer).map((a) => a.site.id));
  for (const siteId of siteIds) {
    const seen = multiset(
      ledger.sent
        .filter((one) => one.siteId === siteId)
        .map(({ method, target, status, domain }) => `${method} ${target} ${status} ${domain}`),
    );
    await settled(ledger, `incoming logs of site ${siteId}`, [], async () => {
      const told = (await readLogs(customer, siteId)).map(
        (line) =>
          `${line.request_method} ${line.uri_path} ${line.response_status} ${line.authority}`,
      );
      return multisetDifference(multiset(told), seen).slice(0, 5);
    });
  }
}

export async function checkServiceStatus(
  ledger: Ledger,
  customer: Customer,
  agents: readonly OutsideAgent[],
): Promise<void> {
  const own = agents.filter((agent) => agent.customer === customer);
  const siteIds = [...new Set(own.map(({ site }) => site.id))];
  const expected = siteIds.map((id) => ({
    id,
    reports: true,
    instances: own.filter(({ site }) => site.id === id).length,
    reporting: own.filter(({ site }) => site.id === id).map(() => true),
  }));
  await settled(ledger, `/${customer.domain}/status/`, expected, async () => {
    const { body } = await customer.api.get(`/${customer.domain}/status/`);
    const told = body as Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;
    return (told[customer.domain] ?? []).map((site) => {
      const instances = (site["instances"] ?? []) as readonly Readonly<Record<string, unknown>>[];
      return {
        id: site["deployment_site_id"] ?? site["id"],
        reports: site["is_log_agent_reporting_data"],
        instances: instances.length,
        reporting: instances.map((instance) => instance["is_log_agent_reporting_data"]),
      };
    });
  });
}

/** Another customer's things do not exist. */
export async function checkIsolation(
  ledger: Ledger,
  [ada, bob]: readonly Customer[],
): Promise<void> {
  if (ada === undefined || bob === undefined) throw new Error("two customers");
  for (const [own, other] of [
    [ada, bob],
    [bob, ada],
  ] as const) {
    const answers = [
      await own.api.get(`/${other.domain}/status/`),
      await own.api.get(`/active-viewset/${other.domain}/`),
      await own.api.post(`/clear-accelerator-cache/${other.domain}/`, {
        url_path_patterns: ["kind:generated"],
      }),
      await own.api.post("/mark-as-bad-bot/203.0.113.9/", {
        attach_to_bot: "foreign",
        attach_to_domain: other.domain,
      }),
    ];
    ledger.compare(
      `${own.name} asks for ${other.domain}`,
      answers.map(({ status }) => status),
      answers.map(() => 404),
    );
    const { body } = await own.api.get(`/metrics-conf/by-deployment-tag/${tag}/`);
    ledger.compare(
      `${own.name} sees nothing of ${other.name} in metrics-conf`,
      JSON.stringify(body).includes(`"customer":"${other.name}"`),
      false,
    );
  }
}

type Status = Readonly<Record<string, unknown>>;

function statusOf(kind: "agent" | "central", configFile: string): Status {
  const { stdout, stderr } = spawnSync(
    node,
    [mainFile, kind, "status", "--json", "--config", configFile],
    { encoding: "utf8" },
  );
  try {
    return JSON.parse(stdout) as Status;
  } catch {
    throw new Error(`${kind} status: ${stdout}${stderr}`);
  }
}

/** Both commands: positions that agents proved, no lag while nothing is under way, a balance that adds up. */
export async function checkStatusCommands(ledger: Ledger, scene: OutsideScene): Promise<void> {
  const centralFile = `${scene.edge.dir}/central.yaml`;
  const bySite = [...new Set(scene.agents.map(({ site }) => site.id))].map((id) => ({
    id,
    live: true,
    lag: 0,
    unfinished: null,
  }));
  await settled(ledger, "accel-central status", bySite, async () =>
    (statusOf("central", centralFile)["deployment_sites"] as readonly Status[]).map((site) => ({
      id: site["id"],
      live: site["live"],
      lag: Number(site["journal_head"]) - Number(site["applied_seq"]),
      unfinished: site["oldest_unfinished"],
    })),
  );
  for (const agent of scene.agents) {
    const told = await until(
      `${agent.name} has shipped what it had`,
      () => {
        const { parts, warnings } = statusOf("agent", agent.configFile) as {
          readonly parts: {
            readonly link: { readonly lag: number };
            readonly spool: Readonly<Record<string, unknown>>;
          };
          readonly warnings: readonly { readonly code: string }[];
        };
        const { accepted, committed, spooled, in_memory: inMemory, dropped } = parts.spool;
        const lost = Object.values(dropped as Readonly<Record<string, number>>).reduce(
          (a, b) => a + b,
          0,
        );
        const settledAt = spooled === 0 && inMemory === 0;
        return (
          settledAt && {
            lag: parts.link.lag,
            accepted,
            committed: Number(committed) + lost,
            // That one was killed is told for an hour.
            warnings: warnings.filter(({ code }) => code !== "unclean_end"),
          }
        );
      },
      settleWithinMs,
    ).catch((error: unknown) => ({ error: String(error), accepted: 0, committed: 0 }));
    const { accepted, committed, ...rest } = told;
    ledger.compare(`${agent.name} status`, rest, { lag: 0, warnings: [] });
    ledger.compare(`${agent.name} status: accepted and committed`, accepted, committed);
  }
}

/** What agents count of requests to the origin, processes that ended included; or one agent's own count since its start. */
export async function originRequestsTold(
  scene: OutsideScene,
  customer: Customer,
  only?: OutsideAgent,
): Promise<number> {
  let total = only === undefined ? (scene.originBefore.get(customer.domain) ?? 0) : 0;
  for (const agent of scene.agents) {
    if (agent.customer !== customer || (only !== undefined && agent !== only)) continue;
    const series = await scrape(agent, "/metrics/deployment");
    total += sum(
      series.filter(
        ({ name, labels }) =>
          name === "accel_agent_origin_requests_total" && labels["domain"] === customer.domain,
      ),
    );
  }
  return total;
}
