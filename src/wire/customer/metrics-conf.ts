// `/metrics-conf/by-deployment-tag/{tag}/`: scrape jobs as Prometheus takes them.

import { Type, type Static } from "typebox";
import { Name16Text } from "../parts.ts";
import { Id, open, shape } from "./shape.ts";

export const ScrapeJob = open(
  {
    job_name: Type.String(),
    metrics_path: Type.String(),
    static_configs: Type.Array(
      open({
        targets: Type.Array(Type.String()),
        labels: Type.Record(Type.String(), Type.String()),
      }),
    ),
  },
  { title: "ScrapeJob" },
);
export type ScrapeJob = Static<typeof ScrapeJob>;

export const MetricsConf = open(
  {
    metrics_config: Type.Array(ScrapeJob),
    customer: Type.String(),
    omitted: Type.Array(
      open({
        deployment_site_id: Id,
        name16: Name16Text,
        instance_id: Type.Optional(Type.String()),
        reason: Type.String(),
      }),
      {
        description:
          "Instances of deployments with the tag that cannot be scraped, with the reason. Without `instance_id` the deployment has no instance.",
      },
    ),
  },
  {
    title: "MetricsConfiguration",
    examples: [
      {
        metrics_config: [
          {
            job_name: "host-edge-1",
            metrics_path: "/metrics/node_exporter",
            static_configs: [
              {
                targets: ["192.0.2.10:9100"],
                labels: { server_name: "edge-1", telemetry_level: "edge_server" },
              },
            ],
          },
        ],
        customer: "Example Ltd",
        omitted: [],
      },
    ],
  },
);
export type MetricsConf = Static<typeof MetricsConf>;
export const metricsConfShape = shape(MetricsConf);
