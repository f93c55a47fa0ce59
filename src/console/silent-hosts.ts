// The hosts that cannot say what a clear would hit, and what becomes of the clear there. Pure.

import type { DryRunDeployment } from "../wire/customer/clear.ts";
import type { FleetSite } from "../wire/customer/fleet.ts";
import { hostName, linkWords, type LinkStanding } from "./fleet.ts";
import { several } from "./words.ts";

type Asked = Pick<DryRunDeployment, "deployment_site_id"> & {
  readonly instances: readonly Pick<
    DryRunDeployment["instances"][number],
    "instance_id" | "state"
  >[];
};

/** Returns a sentence for those that are away, and one for those that may be there and did not answer. Empty: all that are known answered. */
export function silentHosts(
  deployments: readonly Asked[],
  sites: readonly FleetSite[],
  standing: LinkStanding,
  nowMs: number = Date.now(),
): readonly string[] {
  const silent = deployments.flatMap(({ deployment_site_id: id, instances }) => {
    const answered = instances.filter(({ state }) => state === "answered");
    const ids = new Set(answered.map((one) => one.instance_id));
    const hosts = sites.find((site) => site.deployment_site_id === id)?.instances ?? [];
    return hosts.filter((host) => !ids.has(host.instance_id));
  });
  const { away = [], others = [] } = Object.groupBy(silent, (host) =>
    linkWords(host, standing, nowMs).tone === "bad" ? "away" : "others",
  );
  return [
    ...sentence(away.map(hostName), [
      "is away; it clears before it serves again.",
      "are away; they clear before they serve again.",
    ]),
    ...sentence(others.map(hostName), [
      "cannot say now; it clears all the same.",
      "cannot say now; they clear all the same.",
    ]),
  ];
}

const namesMost = 5;

function sentence(
  names: readonly string[],
  [one, many]: readonly [one: string, many: string],
): readonly string[] {
  const left = names.length - namesMost;
  const shown = left > 0 ? [...names.slice(0, namesMost), several(left, "other host")] : names;
  const last = shown.at(-1);
  if (last === undefined) return [];
  if (shown.length === 1) return [`${last} ${one}`];
  return [`${shown.slice(0, -1).join(", ")} and ${last} ${many}`];
}
