// `/{domain}/status/`: whether the agents of a domain's deployments delivered their logs, or confirmed that none are held back, of late; and their releases.

import { serviceStatusShape } from "../../wire/customer/service-status.ts";
import { gives } from "../../wire/customer/operation.ts";
import type { ServiceStatus } from "../../wire/customer/service-status.ts";
import { isBehind } from "../../core/package-version.ts";
import { ok } from "./answer.ts";
import { forUsers, type Endpoint } from "./endpoint.ts";
import type { Reporting } from "./content-unit.ts";
import { hostNamed, isProblem } from "./path-values.ts";
import type { ResourceDeps } from "./resources.ts";

const reportingWindowMs = 180_000;

export function serviceStatusEndpoints({ now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/:domain_name/status/",
      summary: "Read whether the deployments of a domain report",
      gives: gives(serviceStatusShape),
      refuses: [404],
      handle: async ({ actor, param, read }) =>
        read(async (unit) => {
          const host = await hostNamed(unit, actor, param("domain_name"));
          if (isProblem(host)) return host;
          const deployments = await unit.deployments.reporting(host.domainId);
          const newest = (await unit.packages.newest())?.version;
          const isLately = (at: string | undefined): boolean =>
            at !== undefined && now().getTime() - Date.parse(at) <= reportingWindowMs;
          return ok({
            [host.main]: deployments.map((one) => ({
              is_log_agent_reporting_data: isLately(one.logsConfirmedAt),
              ...release(one, newest),
            })),
          } satisfies ServiceStatus);
        }),
    }),
  ];
}

/** What is not known is absent. */
function release(
  { deploymentSiteId, agentVersion }: Reporting,
  newest: string | undefined,
): Partial<ServiceStatus[string][number]> {
  if (agentVersion === undefined) return {};
  const is_behind = isBehind(agentVersion, newest);
  return {
    deployment_site_id: deploymentSiteId,
    agent_version: agentVersion,
    ...(is_behind !== undefined && { is_behind }),
  };
}
