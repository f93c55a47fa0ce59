// What `/metrics-conf/by-deployment-tag/` returns, given to a real Prometheus as it is: two deployments on one edge server and one on another, each with a real
// agent. Every target is up and carries the labels of the specification; another tag's deployment is not among them.

import { join } from "node:path";
import { expect, test } from "vitest";
import { Edge } from "../support/edge.ts";
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

const tag = "eu";
const customer = "metrics";
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
  `two deployments on one edge server and one on another: every target is up, with its labels (${prometheusHint})`,
  { timeout: 400_000 },
  async () => {
    await using edge = await Edge.prepare();
    await edge.startCentral();
    const trial = await edge.api.post("/trial/", { username: customer, email: "m@example.com" });
    edge.api.token = (trial.body as { readonly token: string }).token;
    const sites = [await newSite(edge, tag), await newSite(edge, tag), await newSite(edge, tag)];
    const other = await newSite(edge, "us");
    edge.writeAgentSettings(other);
    await edge.startAgent();
    await using stack = new AsyncDisposableStack();
    for (const [no, site] of sites.entries())
      stack.use(await startFurtherAgent(edge, site, no < 2 ? "edge-one" : "edge-two"));

    const jobs = await until(
      "every agent has said where it is",
      async () => {
        const { status, body } = await edge.api.get(`/metrics-conf/by-deployment-tag/${tag}/`);
        const told = body as { metrics_config: readonly Job[]; omitted: readonly unknown[] };
        return status === 200 && told.omitted.length === 0 && told.metrics_config;
      },
      150_000,
    );
    // One for each deployment, two for each edge server.
    expect(jobs.map((job) => `${job.job_name} ${job.metrics_path}`).sort()).toEqual(
      [
        ...sites.map(({ name16 }) => `deployment-${name16} /metrics/deployment`),
        ...["edge-one", "edge-two"].flatMap((name) => [
          `edge-${name} /metrics`,
          `host-${name} /metrics/node_exporter`,
        ]),
      ].sort(),
    );

    await using prometheus = await startPrometheus(jobs);
    const targets = await prometheus.targets(jobs.length);
    expect(targets.map(({ health, lastError }) => ({ health, lastError }))).toEqual(
      jobs.map(() => ({ health: "up", lastError: "" })),
    );
    const labelsOf = (jobName: string) => {
      const target = targets.find(({ labels }) => labels["job"] === jobName);
      return target === undefined ? undefined : givenLabels(target.labels);
    };
    for (const [no, site] of sites.entries())
      expect(labelsOf(`deployment-${site.name16}`)).toEqual({
        telemetry_level: "deployment",
        customer,
        at_directory: join(edge.dir, site.name16),
        at_edge__server_name: no < 2 ? "edge-one" : "edge-two",
        at_edge__edge_ip_address: "127.0.0.1",
        at_edge__datacenter__datacenter_place: datacenter.datacenter_place,
        at_edge__datacenter__country_code: datacenter.country_code,
        at_edge__datacenter__datacenter_provider_company: datacenter.datacenter_provider_company,
      });
    for (const server of ["edge-one", "edge-two"])
      for (const jobName of [`edge-${server}`, `host-${server}`])
        expect(labelsOf(jobName)).toEqual({
          server_name: server,
          telemetry_level: "edge_server",
          edge_ip_address: "127.0.0.1",
          datacenter__datacenter_place: datacenter.datacenter_place,
          datacenter__country_code: datacenter.country_code,
          datacenter__datacenter_provider_company: datacenter.datacenter_provider_company,
        });
    // What each of the deployments says comes under its own labels.
    const own = '{__name__=~"accel_agent_.+", telemetry_level="deployment"}';
    const said = async (): Promise<unknown> => prometheus.query(`count by (at_directory) (${own})`);
    // Without the series of one whose last scrape was too slow.
    await until(
      "all of them say something",
      async () => Object(await said()).length >= sites.length,
    );
    expect(await said()).toHaveLength(sites.length);
  },
);
