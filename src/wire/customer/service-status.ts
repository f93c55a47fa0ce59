// `/{domain}/status/`: whether the agents of a domain's deployments report, and whether one is behind the newest accelerator package.

import { Type, type Static } from "typebox";
import { Timestamp } from "../parts.ts";
import { Id, open, shape } from "./shape.ts";

const release = {
  /** Absent if the agent did not tell it. */
  agent_version: Type.Optional(Type.String()),
  /** Whether its release is older than the newest accelerator package; absent if either is not known. */
  is_behind: Type.Optional(Type.Boolean()),
};

const Instance = open({
  instance_id: Type.String(),
  is_log_agent_reporting_data: Type.Boolean(),
  ...release,
  last_seen: Timestamp,
});

const Deployment = open({
  is_log_agent_reporting_data: Type.Boolean({
    description:
      "Whether every instance that was seen in the last 3 minutes delivered its logs in that time, or confirmed that it holds none. False if none was seen.",
  }),
  deployment_site_id: Id,
  agent_version: Type.Optional(
    Type.String({ description: "The oldest release among its instances." }),
  ),
  is_behind: release.is_behind,
  instances: Type.Array(Instance, {
    description:
      "Each state directory of an accelerator host that was seen in the last day; if none was, the one seen last. Empty if no agent ever connected.",
  }),
});

export const ServiceStatus = Type.Record(Type.String(), Type.Array(Deployment), {
  title: "ServiceStatus",
  description: "By main domain, with one entry for each deployment site.",
  examples: [
    {
      "www.example.com": [
        {
          is_log_agent_reporting_data: true,
          deployment_site_id: 7,
          agent_version: "0.1.0",
          is_behind: true,
          instances: [
            {
              instance_id: "3f0c2a9d5b7e41c8",
              is_log_agent_reporting_data: true,
              agent_version: "0.1.0",
              is_behind: true,
              last_seen: "2026-11-30T08:15:00.000Z",
            },
          ],
        },
        { is_log_agent_reporting_data: false, deployment_site_id: 8, instances: [] },
      ],
    },
  ],
});
export type ServiceStatus = Static<typeof ServiceStatus>;
export const serviceStatusShape = shape(ServiceStatus);
