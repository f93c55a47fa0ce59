// `/{domain}/status/`: whether the agents of a domain's deployments report, and whether one is behind the newest accelerator package.

import { Type, type Static } from "typebox";
import { Id, open, shape } from "./shape.ts";

const Deployment = open({
  is_log_agent_reporting_data: Type.Boolean(),
  /** Of a deployment whose agent said of which release it is. */
  deployment_site_id: Type.Optional(Id),
  agent_version: Type.Optional(Type.String()),
  /** Whether its release is older than the newest accelerator package; absent where there is none. */
  is_behind: Type.Optional(Type.Boolean()),
});

export const ServiceStatus = Type.Record(Type.String(), Type.Array(Deployment), {
  title: "ServiceStatus",
  description: "By main domain, one entry for each deployment site.",
  examples: [
    { "www.example.com": [{ is_log_agent_reporting_data: true }] },
    {
      "www.example.com": [
        {
          is_log_agent_reporting_data: true,
          deployment_site_id: 7,
          agent_version: "0.1.0",
          is_behind: true,
        },
      ],
    },
  ],
});
export type ServiceStatus = Static<typeof ServiceStatus>;
export const serviceStatusShape = shape(ServiceStatus);
