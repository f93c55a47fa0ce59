// `/{domain}/status/`: whether the agents of a domain's deployments delivered their logs, or confirmed that none are held back, of late.

import type { ServiceStatus } from "../../wire/customer/service-status.ts";
import { ok } from "./answer.ts";
import { forUsers, type Endpoint } from "./endpoint.ts";
import { hostNamed, isProblem } from "./path-values.ts";
import type { ResourceDeps } from "./resources.ts";

const reportingWindowMs = 180_000;

export function serviceStatusEndpoints({ now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/:domain_name/status/",
      summary: "Read whether the deployments of a domain report",
      handle: async ({ actor, param, read }) =>
        read(async (unit) => {
          const host = await hostNamed(unit, actor, param("domain_name"));
          if (isProblem(host)) return host;
          const confirmed = await unit.deployments.logsConfirmed(host.domainId);
          const isLately = (at: string | undefined): boolean =>
            at !== undefined && now().getTime() - Date.parse(at) <= reportingWindowMs;
          return ok({
            [host.main]: confirmed.map((at) => ({ is_log_agent_reporting_data: isLately(at) })),
          } satisfies ServiceStatus);
        }),
    }),
  ];
}
