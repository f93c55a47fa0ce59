// What `/metrics-conf/by-deployment-tag/` returns, given to a real Prometheus as it is: three agents on two deployment sites and two edge servers. Every target is up and carries
// the labels of the specification, sums over all jobs are what was sent, and another tag's deployment is not among them.

import { expect, test } from "vitest";
import { Edge, visit } from "../support/edge.ts";
import { datacenter, startFurtherAgent, type Site } from "../support/further-agent.ts";
import { prometheusHint, prometheusMissing, startPrometheus } from "../support/prometheus.ts";
import { until } from "../support/until.ts";

type Job = {
  readonly job_name: string;
  readonly metrics_path: string;
  readonly static_configs: readonly {
    readonly targets: readonly string[];
    readonly labels: Readonly<Record<string, string>>;
  }[];
};
type Sample = {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
};

const tag = "eu";
const customer = "metrics";
const domain = "www.metrics.example";
async function newSite(edge: Edge, tags: string): Promise<Site> {
  const { status, body } = await edge.api.post("/deployment-site/", { tags });
  expect(status).toBe(201);
  return body as Site; // What the specification says of this answer.
}

/** A target's own labels, without those that Prometheus adds. */
function givenLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { instance: _instance, job: _job, ...given } = labels;
  return given;
}

test.skipIf(prometheusMissing)(
  `three agents on two sites: every target is up, with its labels, and sums are what was sent (${prometheusHint})`,
  { timeout: 600_000 },
  async () => {
    await using edge = await Edge.prepare();
    await edge.startCentral();
    const trial = await edge.api.post("/trial/", { username: customer, email: "m@example.com" });
    edge.api.token = (trial.body as { readonly token: string }).token;
    const [one, two] = [await newSite(edge, tag), await newSite(edge, tag)];
    const other = await newSite(edge, "us");
    const made = { name: domain, link_to_deployment_sites_with_tags: tag };
    expect((await edge.api.post("/domain/", made)).status).toBe(201);
    edge.writeAgentSettings(other);
    await edge.startAgent();
    await using stack = new AsyncDisposableStack();
    const plan = [
      { site: one, server: "edge-one", visits: 7 },
      { site: one, server: "edge-two", visits: 11 },
      { site: two, server: "edge-one", visits: 13 },
    ];
    const start = async ({ site, server, visits }: (typeof plan)[number]) => {
      const { port, dir, metricsPort } = stack.use(await startFurtherAgent(edge, site, server));
      return { port, dir, site, server, visits, target: `127.0.0.1:${metricsPort}` };
    };
    const agents: Awaited<ReturnType<typeof start>>[] = [];
    for (const planned of plan) agents.push(await start(planned));
    const targetsAt = (server: string): readonly string[] =>
      agents
        .filter((agent) => agent.server === server)
        .map(({ target }) => target)
        .sort();
    const targetsOf = (site: Site): readonly string[] =>
      agents
        .filter((agent) => agent.site === site)
        .map(({ target }) => target)
        .sort();

    const jobs = await until(
      "every agent has said where it is",
      async () => {
        const { status, body } = await edge.api.get(`/metrics-conf/by-deployment-tag/${tag}/`);
        const told = body as { metrics_config: readonly Job[]; omitted: readonly unknown[] };
        const targets = told.metrics_config.flatMap(({ static_configs: configs }) => configs);
        const distinct = new Set(targets.flatMap((config) => config.targets));
        const isWhole = told.omitted.length === 0 && distinct.size === agents.length;
        return status === 200 && isWhole && told.metrics_config;
      },
      150_000,
    );
    // One for each deployment with each of its hosts, two for each edge server with each of its targets.
    const shown = jobs.map(({ job_name: name, metrics_path: path, static_configs: configs }) => [
      `${name} ${path}`,
      configs.flatMap(({ targets }) => targets).sort(),
    ]);
    expect(Object.fromEntries(shown)).toEqual({
      [`deployment-${one.name16} /metrics/deployment`]: targetsOf(one),
      [`deployment-${two.name16} /metrics/deployment`]: targetsOf(two),
      "edge-edge-one /metrics": targetsAt("edge-one"),
      "host-edge-one /metrics/node_exporter": targetsAt("edge-one"),
      "edge-edge-two /metrics": targetsAt("edge-two"),
      "host-edge-two /metrics/node_exporter": targetsAt("edge-two"),
    });
    for (const { port, visits } of agents)
      for (let no = 0; no < visits; no++) await visit(port, `/${no}`, { host: domain });

    await using prometheus = await startPrometheus(jobs);
    const targets = await prometheus.targets(3 * agents.length);
    expect(targets.map(({ health, lastError }) => ({ health, lastError }))).toEqual(
      Array.from({ length: 3 * agents.length }, () => ({ health: "up", lastError: "" })),
    );
    const labelsOf = (job: string, instance: string) => {
      const target = targets.find(
        ({ labels }) => labels["job"] === job && labels["instance"] === instance,
      );
      return target === undefined ? undefined : givenLabels(target.labels);
    };
    for (const { site, server, target, dir } of agents) {
      expect(labelsOf(`deployment-${site.name16}`, target)).toEqual({
        telemetry_level: "deployment",
        customer,
        at_directory: dir,
        at_edge__server_name: server,
        at_edge__edge_ip_address: "127.0.0.1",
        at_edge__datacenter__datacenter_place: datacenter.datacenter_place,
        at_edge__datacenter__country_code: datacenter.country_code,
        at_edge__datacenter__datacenter_provider_company: datacenter.datacenter_provider_company,
      });
      for (const job of [`edge-${server}`, `host-${server}`])
        expect(labelsOf(job, target)).toEqual({
          server_name: server,
          telemetry_level: "edge_server",
          edge_ip_address: "127.0.0.1",
          datacenter__datacenter_place: datacenter.datacenter_place,
          datacenter__country_code: datacenter.country_code,
          datacenter__datacenter_provider_company: datacenter.datacenter_provider_company,
        });
    }

    const ask = async (query: string): Promise<readonly Sample[]> =>
      (await prometheus.query(query)) as readonly Sample[]; // A vector, as the queries below are.
    const sums = async (query: string): Promise<readonly number[]> =>
      (await ask(query)).map(({ value }) => Number(value[1])).sort((a, b) => a - b);
    const requests = `accel_agent_requests_total{domain="${domain}"}`;
    // Without a series of one whose last scrape was too slow: asked again, until all are there.
    const equals = async (query: string, expected: readonly number[]): Promise<void> => {
      const isSo = async (): Promise<boolean> =>
        JSON.stringify(await sums(query)) === JSON.stringify(expected);
      await until(query, isSo).catch(() => undefined);
      expect([query, await sums(query)]).toEqual([query, expected]);
    };
    await equals(`sum(${requests})`, [31]);
    await equals(`sum by (job) (${requests})`, [13, 18]);
    await equals(`sum by (at_edge__server_name) (${requests})`, [11, 20]);
    // Each agent runs one worker.
    await equals("sum(accel_agent_workers)", [3]);
    await equals("count(accel_agent_build_info)", [3]);
    await equals("sum(accel_agent_link_connected)", [3]);
    const every = '{__name__=~"accel_agent_.+"}';
    const levels = `count by (__name__) (count by (__name__, telemetry_level) (${every}))`;
    expect((await ask(`${levels} > 1`)).map(({ metric }) => metric["__name__"])).toEqual([]);
  },
);
