// `/{domain}/status/`: whether the agents of a domain's deployments delivered their logs lately, or confirmed
// that they hold none back, and which releases they run.

import { serviceStatusShape } from "../../wire/customer/service-status.ts";
import { gives } from "../../wire/customer/operation.ts";
import type { ServiceStatus } from "../../wire/customer/service-status.ts";
import { isBehind, oldestRelease } from "../../core/package-version.ts";
import { ok } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";
import type { Reporting } from "../store/content/deployments.ts";
import type { ResourceDeps } from "./deps.ts";
import { listReporting } from "../store/content/deployments.ts";
import { newestPackage } from "../store/packages/packages.ts";

const reportingWindowMs = 180_000;

export function serviceStatusEndpoints({ now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/:domain_name/status/",
      id: "getDomainStatus",
      needs: { role: "read", scope: "domain" },
      summary: "Read whether the deployments of a domain report",
      gives: gives(serviceStatusShape),
      refuses: [404],
      handle: async ({ actor, param, read }) =>
        read(async (work) => {
          const host = await hostNamed(work, actor, param("domain_name"));
          if (isProblem(host)) return host;
          const deployments = await listReporting(work, host.domainId);
          const newest = (await newestPackage(work.tx))?.version;
          const nowMs = now().getTime();
          return ok({
            [host.main]: deployments.map((one) => deploymentStatus(one, newest, nowMs)),
          } satisfies ServiceStatus);
        }),
    }),
  ];
}

/** Whether a time is not longer ago than what counts as reporting. Pure. */
export function isLately(at: string | undefined, nowMs: number): boolean {
  return at !== undefined && nowMs - Date.parse(at) <= reportingWindowMs;
}

/**
 * Describes a deployment. Pure. One host that holds its logs back makes the deployment false, however many
 * others deliver.
 */
export function deploymentStatus(
  { id, instances }: Reporting,
  newest: string | undefined,
  nowMs: number,
): ServiceStatus[string][number] {
  const live = instances.filter(({ lastSeen }) => isLately(lastSeen, nowMs));
  const counting = live.length > 0 ? live : instances.slice(0, 1);
  return {
    is_log_agent_reporting_data:
      live.length > 0 && live.every((one) => isLately(one.logsConfirmedAt, nowMs)),
    deployment_site_id: id,
    ...release(oldestRelease(counting.flatMap((one) => one.agentVersion ?? [])), newest),
    instances: instances
      .toSorted((a, b) => (a.instanceId < b.instanceId ? -1 : 1))
      .map((one) => ({
        instance_id: one.instanceId,
        is_log_agent_reporting_data:
          isLately(one.lastSeen, nowMs) && isLately(one.logsConfirmedAt, nowMs),
        ...release(one.agentVersion, newest),
        last_seen: one.lastSeen,
      })),
  };
}

/** Describes a release; facts that are not known are absent. */
function release(
  agentVersion: string | undefined,
  newest: string | undefined,
): Pick<ServiceStatus[string][number], "agent_version" | "is_behind"> {
  if (agentVersion === undefined) return {};
  const is_behind = isBehind(agentVersion, newest);
  return { agent_version: agentVersion, ...(is_behind !== undefined && { is_behind }) };
}
