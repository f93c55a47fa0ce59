// Joins the other centrals at the store, where the settings say that there are some.

import { hostname } from "node:os";
import type { Log } from "../base/log.ts";
import type { Registry } from "../base/metrics.ts";
import type { Sealer } from "../base/seal.ts";
import { listenText } from "../base/settings-fields.ts";
import { openCluster, type Cluster } from "./cluster/cluster.ts";
import type { CentralJob } from "./cluster/membership.ts";
import type { CentralSettings } from "./settings/fields.ts";
import type { CentralStore } from "./store-opening.ts";

export type OthersDeps = Pick<CentralStore, "store" | "openWay"> & {
  readonly settings: CentralSettings;
  readonly version: string;
  readonly registry: Registry;
  readonly sealer: Sealer;
  /** When this central started, ISO 8601. */
  readonly started: string;
  readonly log: Log;
};

/** Returns undefined where this central is the only one. Throws what the store throws, and STORE_KEY_WRONG. */
export async function openOthers(deps: OthersDeps): Promise<Cluster | undefined> {
  const { openWay, settings, version, started: whenStarted } = deps;
  if (openWay === undefined) return undefined;
  const address = `${hostname()} (${listenText(settings.listen)})`;
  const central = { address, version, whenStarted };
  return openCluster({ ...deps, openWay, central, monotonicMs: () => performance.now() });
}

/** Returns whether this central does the job now. One that is alone does all. */
export function isOurs(others: Cluster | undefined, job: CentralJob): boolean {
  return others?.membership.does(job) ?? true;
}

/** How many centrals share what a limit allows. */
export function centralsOf(others: Cluster | undefined): number {
  return others?.membership.count ?? 1;
}
