// `/metrics-conf/by-deployment-tag/{tag}/`: scrape jobs as Prometheus takes them.

import { Type, type Static } from "typebox";
import { Name16Text } from "../parts.ts";
import { Id, open, shape } from "./shape.ts";

export const ScrapeJob = open({
  job_name: Type.String(),
  metrics_path: Type.String(),
  static_configs: Type.Array(
    open({
      targets: Type.Array(Type.String()),
      labels: Type.Record(Type.String(), Type.String()),
    }),
  ),
});
export type ScrapeJob = Static<typeof ScrapeJob>;

export const MetricsConf = open({
  metrics_config: Type.Array(ScrapeJob),
  customer: Type.String(),
  /** Deployments with the tag that cannot be scraped, and why. */
  omitted: Type.Array(open({ deployment_site_id: Id, name16: Name16Text, reason: Type.String() })),
});
export type MetricsConf = Static<typeof MetricsConf>;
export const metricsConfShape = shape(MetricsConf);
