// `/metrics-conf/by-deployment-tag/{tag}/`: scrape jobs for all deployments with a tag, ready to be pasted
// into Prometheus.
//
// There is one job for each deployment, with one element for each of its instances, and two for each edge
// server with each distinct target, however many deployments and instances it carries. Job names are unique.
// Nothing is scraped twice under one job, so that sums over a job count once.

import { metricsConfShape } from "../../wire/customer/metrics-conf.ts";
import { gives } from "../../wire/customer/operation.ts";
import type { EdgeFacts } from "../../wire/channel.ts";
import type { MetricsConf, ScrapeJob } from "../../wire/customer/metrics-conf.ts";
import { notFound, ok } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import type { DeploymentFacts, InstanceFacts } from "../store/content/deployments.ts";
import type { ResourceDeps } from "./deps.ts";
import { listDeployments } from "../store/content/deployments.ts";
import { findCustomer } from "../store/people/customers.ts";

/** The time for which an instance counts as up after it was seen: three periods of its poll. */
const liveMs = 180_000;

export function metricsConfEndpoints({ now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/metrics-conf/by-deployment-tag/:tag/",
      id: "getMetricsConfiguration",
      needs: { role: "read", scope: "customer" },
      summary: "Read the scrape configuration of all deployments with a tag",
      gives: gives(metricsConfShape),
      handle: async ({ actor, param, read }) =>
        read(async (work) => {
          const customer = await findCustomer(work, actor.customerId);
          if (customer === undefined) return notFound("customer");
          const deployments = await listDeployments(work, actor.customerId);
          const tag = param("tag").trim();
          return ok(
            metricsConf(customer.name, deployments, {
              isMeant: ({ tags }) => tags.includes(tag),
              nowMs: now().getTime(),
            }),
          );
        }),
    }),
  ];
}

/**
 * Makes the configuration. Pure. `deployments` are all of the customer's; those that are not meant still tell
 * whose an address is.
 */
export function metricsConf(
  customer: string,
  deployments: readonly DeploymentFacts[],
  options: { readonly isMeant: (deployment: DeploymentFacts) => boolean; readonly nowMs: number },
): MetricsConf {
  const all = deployments.flatMap(({ instances }) => instances);
  const jobs: ScrapeJob[] = [];
  const servers = new Map<string, Scraped[]>();
  const omitted: MetricsConf["omitted"] = [];
  for (const { id, name16, instances } of deployments.filter(options.isMeant)) {
    const scraped: Scraped[] = [];
    for (const instance of instances.toSorted(byId)) {
      const found = scrapedAt(instance, all, options.nowMs);
      const { instanceId: instance_id } = instance;
      if (typeof found === "string")
        omitted.push({ deployment_site_id: id, name16, instance_id, reason: found });
      // One address is one agent, whoever else claims it.
      else if (!scraped.some(({ target }) => target === found.target)) scraped.push(found);
    }
    if (instances.length === 0)
      omitted.push({ deployment_site_id: id, name16, reason: "its agent never connected" });
    if (scraped.length > 0) jobs.push(deploymentJob(customer, name16, scraped));
    for (const one of scraped) {
      const server = one.edge.server_name === "" ? one.target : one.edge.server_name;
      servers.set(server, [...(servers.get(server) ?? []), one]);
    }
  }
  const ofServers = [...servers].flatMap(([server, scraped]) => serverJobs(server, scraped));
  return { metrics_config: [...jobs, ...ofServers], customer, omitted };
}

type Scraped = { readonly target: string; readonly edge: EdgeFacts };

function byId(a: InstanceFacts, b: InstanceFacts): number {
  return a.instanceId < b.instanceId ? -1 : 1;
}

/** Returns the target, or a text that says why the instance cannot be scraped. */
function scrapedAt(
  instance: InstanceFacts,
  all: readonly InstanceFacts[],
  nowMs: number,
): Scraped | string {
  const { edge, agentVersion, lastSeen } = instance;
  const target = edge?.metrics_advertise ?? null;
  if (agentVersion === undefined)
    return "its agent has stated no address yet: it has no channel, and reports of its release do not contain one";
  if (edge === undefined || target === null)
    return "its agent advertises no address for metrics (`edge.metrics_advertise`)";
  // A host that was installed anew, or serves another site now: at its address answers the agent that was
  // seen since.
  const isLive = nowMs - Date.parse(lastSeen) <= liveMs;
  const isTaken = all.some(
    (other) => other.edge?.metrics_advertise === target && other.lastSeen > lastSeen,
  );
  if (!isLive && isTaken) return `another agent that was seen since advertises its address`;
  return { target, edge };
}

function deploymentJob(customer: string, name16: string, scraped: readonly Scraped[]): ScrapeJob {
  return {
    job_name: `deployment-${name16}`,
    metrics_path: "/metrics/deployment",
    static_configs: scraped.map(({ target, edge }) => ({
      targets: [target],
      labels: deploymentLabels(customer, edge),
    })),
  };
}

function deploymentLabels(customer: string, edge: EdgeFacts): Record<string, string> {
  return {
    telemetry_level: "deployment",
    customer,
    at_directory: edge.at_directory,
    at_edge__server_name: edge.server_name,
    at_edge__edge_ip_address: edge.edge_ip_address,
    at_edge__datacenter__datacenter_place: edge.datacenter_place,
    at_edge__datacenter__country_code: edge.country_code,
    at_edge__datacenter__datacenter_provider_company: edge.datacenter_provider_company,
  };
}

/** Makes an element for each set of labels, with the targets that have it. */
function serverJobs(server: string, scraped: readonly Scraped[]): readonly ScrapeJob[] {
  const distinct = new Map(scraped.map((one) => [one.target, one]));
  const byLabels = Map.groupBy(distinct.values(), ({ edge }) => JSON.stringify(serverLabels(edge)));
  const static_configs = [...byLabels].map(([labels, alike]) => ({
    targets: alike.map(({ target }) => target),
    labels: JSON.parse(labels) as Record<string, string>, // It was written just above.
  }));
  return [
    { job_name: `edge-${server}`, metrics_path: "/metrics", static_configs },
    { job_name: `host-${server}`, metrics_path: "/metrics/node_exporter", static_configs },
  ];
}

function serverLabels(edge: EdgeFacts): Record<string, string> {
  return {
    server_name: edge.server_name,
    telemetry_level: "edge_server",
    edge_ip_address: edge.edge_ip_address,
    datacenter__datacenter_place: edge.datacenter_place,
    datacenter__country_code: edge.country_code,
    datacenter__datacenter_provider_company: edge.datacenter_provider_company,
  };
}
