// `/incominglogs/`: what visitors asked the customer's domains, newest first.

import { Type, type Static } from "typebox";
import type { QueryParameter } from "./operation.ts";
import { open, shape } from "./shape.ts";

export const logsLimitMax = 1_000;

export const LogLine = open(
  {
    connection: Type.Number({
      description: "The number of the connection since the agent's start.",
    }),
    response_status: Type.Number(),
    request_method: Type.String(),
    uri_path: Type.String(),
    backend_time: Type.Number({ description: "Seconds; 0 when no origin was asked." }),
    when: Type.Number({ description: "Seconds since the epoch." }),
    authority: Type.String(),
    deployment_id: Type.Number(),
  },
  { title: "Log" },
);
export type LogLine = Static<typeof LogLine>;

export const DeploymentLogs = open({
  deployment_id: Type.Number(),
  deployment_desc: Type.String(),
  domains: Type.Array(
    open({ domain_name: Type.String(), domain_logs: Type.Optional(Type.Array(LogLine)) }),
  ),
});
export type DeploymentLogs = Static<typeof DeploymentLogs>;

export const IncomingLogs = open(
  { logs_data: open({ username: Type.String(), deployments: Type.Array(DeploymentLogs) }) },
  {
    title: "IncomingLogs",
    description: "The newest first, by deployment and main domain.",
    examples: [
      {
        logs_data: {
          username: "ada",
          deployments: [
            {
              deployment_id: 7,
              deployment_desc: "5f0c9a7be3d21846 (production,eu)",
              domains: [
                {
                  domain_name: "www.example.com",
                  domain_logs: [
                    {
                      connection: 5_211,
                      response_status: 200,
                      request_method: "GET",
                      uri_path: "/index.html",
                      backend_time: 0.012,
                      when: 1_795_000_000.25,
                      authority: "www.example.com",
                      deployment_id: 7,
                    },
                  ],
                },
              ],
            },
          ],
        },
      },
    ],
  },
);
export type IncomingLogs = Static<typeof IncomingLogs>;
export const incomingLogsShape = shape(IncomingLogs);

const time = { type: "string", examples: ["2026-11-22T00:00:00Z"] };
const timeText = "seconds since the epoch or an ISO 8601 time, inclusive.";
export const logParameters: Readonly<Record<string, QueryParameter>> = {
  domain: {
    schema: { type: "string", examples: ["www.example.com"] },
    description: "Only the records of this main domain.",
  },
  deployment_id: {
    schema: { type: "integer", minimum: 1, examples: [7] },
    description: "Only the records of this deployment site.",
  },
  limit: {
    schema: { type: "integer", minimum: 1, maximum: logsLimitMax, default: logsLimitMax },
    description: "The largest number of records for each deployment and domain.",
  },
  since: { schema: time, description: `Not before: ${timeText}` },
  until: { schema: time, description: `Not after: ${timeText}` },
  after: {
    schema: { type: "string" },
    description:
      "The cursor in the header `Link` of the previous page. With domain and deployment_id it leads through everything that is retained, each record once.",
  },
};
