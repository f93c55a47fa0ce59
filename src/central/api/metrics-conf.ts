// `/metrics-conf/by-deployment-tag/{tag}/`: scrape jobs for all deployments with a tag, ready to be pasted into Prometheus.
//
// One job for each deployment; two for each edge server, however many deployments it carries. Job names are unique.

import { metricsConfShape } from "../../wire/customer/metrics-conf.ts";
import { gives } from "../../wire/customer/operation.ts";
import type { EdgeFacts } from "../../wire/channel.ts";
import type { MetricsConf, ScrapeJob } from "../../wire/customer/metrics-conf.ts";
import { notFound, ok } from "./answer.ts";
import { forUsers, type Endpoint } from "./endpoint.ts";
import type { DeploymentFacts } from "./content-unit.ts";

export function metricsConfEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/metrics-conf/by-deployment-tag/:tag/",
      summary: "Read the scrape configuration of all deployments with a tag",
      gives: gives(metricsConfShape),
      handle: async ({ actor, param, read }) =>
        read(async (unit) => {
          const customer = await unit.customers.find(actor.customerId);
          if (customer === undefined) return notFound("customer");
          const deployments = await unit.deployments.list(actor.customerId);
          const tag = param("tag").trim();
          return ok(
            metricsConf(
              customer.name,
              deployments.filter(({ tags }) => tags.includes(tag)),
            ),
          );
        }),
    }),
  ];
}

/** Pure. */
export function metricsConf(
  customer: string,
  deployments: readonly DeploymentFacts[],
): MetricsConf {
  const jobs: ScrapeJob[] = [];
  const servers = new Map<string, ScrapeJob[]>();
  const omitted: MetricsConf["omitted"] = [];
  for (const deployment of deployments) {
    const { id, name16, edge } = deployment;
    const target = edge?.metrics_advertise ?? null;
    if (edge === undefined || target === null) {
      omitted.push({ deployment_site_id: id, name16, reason: whyOmitted(deployment) });
      continue;
    }
    jobs.push(
      job(`deployment-${name16}`, "/metrics/deployment", target, deploymentLabels(customer, edge)),
    );
    const server = edge.server_name === "" ? target : edge.server_name;
    if (!servers.has(server)) servers.set(server, serverJobs(server, target, edge));
  }
  return { metrics_config: [...jobs, ...[...servers.values()].flat()], customer, omitted };
}

function whyOmitted({ wasSeen, hasTold }: DeploymentFacts): string {
  if (!wasSeen) return "its agent never connected";
  return hasTold
    ? "its agent advertises no address for metrics (`edge.metrics_advertise`)"
    : "its agent has told no address yet: it has no channel, and reports of its release do not say";
}

function serverJobs(server: string, target: string, edge: EdgeFacts): ScrapeJob[] {
  const labels = {
    server_name: edge.server_name,
    telemetry_level: "edge_server",
    edge_ip_address: edge.edge_ip_address,
    datacenter__datacenter_place: edge.datacenter_place,
    datacenter__country_code: edge.country_code,
    datacenter__datacenter_provider_company: edge.datacenter_provider_company,
  };
  return [
    job(`edge-${server}`, "/metrics", target, labels),
    job(`host-${server}`, "/metrics/node_exporter", target, labels),
  ];
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

function job(
  name: string,
  path: string,
  target: string,
  labels: Record<string, string>,
): ScrapeJob {
  return { job_name: name, metrics_path: path, static_configs: [{ targets: [target], labels }] };
}
