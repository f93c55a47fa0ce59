// `/incominglogs/`: what visitors asked the customer's domains, newest first.

import { Type, type Static } from "typebox";
import { open, shape } from "./shape.ts";

export const logsLimitMax = 1_000;

export const LogLine = open({
  connection: Type.Number(),
  response_status: Type.Number(),
  request_method: Type.String(),
  uri_path: Type.String(),
  backend_time: Type.Number(),
  when: Type.Number(),
  authority: Type.String(),
  deployment_id: Type.Number(),
});
export type LogLine = Static<typeof LogLine>;

export const DeploymentLogs = open({
  deployment_id: Type.Number(),
  deployment_desc: Type.String(),
  domains: Type.Array(
    open({ domain_name: Type.String(), domain_logs: Type.Optional(Type.Array(LogLine)) }),
  ),
});
export type DeploymentLogs = Static<typeof DeploymentLogs>;

export const IncomingLogs = open({
  logs_data: open({ username: Type.String(), deployments: Type.Array(DeploymentLogs) }),
});
export type IncomingLogs = Static<typeof IncomingLogs>;
export const incomingLogsShape = shape(IncomingLogs);
