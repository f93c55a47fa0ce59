// `/{domain}/status/`: whether the agents of a domain's deployments report.

import { Type, type Static } from "typebox";
import { open, shape } from "./shape.ts";

export const ServiceStatus = Type.Record(
  Type.String(),
  Type.Array(open({ is_log_agent_reporting_data: Type.Boolean() })),
);
export type ServiceStatus = Static<typeof ServiceStatus>;
export const serviceStatusShape = shape(ServiceStatus);
