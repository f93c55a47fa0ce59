// What is proved of a clear, to however many sites: read some sites at a time, so that others have their turn at the store, and while somebody waits only where something is
// still to be told.

import {
  clearedAtPlaces,
  findClear,
  type ClearDeploymentState,
  type ClearPlaced,
} from "../store/journal/clears.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import { parts } from "../store/engine/parts.ts";

/** Of so many sites the proofs are read in one transaction: 50 ms. */
const sitesPerRead = 2_000;

export type ClearProved = ClearPlaced & { readonly deployments: readonly ClearDeploymentState[] };
type Read = Transactions["transact"];

/** Returns undefined where the customer has no such clear. */
export async function readClear(
  read: Read,
  customerId: number,
  clearId: string,
): Promise<ClearProved | undefined> {
  const clear = await read(async (work) => findClear(work, customerId, clearId));
  return clear === undefined ? undefined : proved(read, clear);
}

/**
 * Reads on. While the clear is open at some of its sites, only these are asked; what is said of all others may be from before. When it is open nowhere, all of it is from
 * after the call.
 */
export async function readClearOn(
  read: Read,
  before: ClearProved,
  isOpen: (deployment: ClearDeploymentState) => boolean,
): Promise<ClearProved> {
  const open = before.deployments.filter(isOpen);
  const ids = new Set(open.map(({ deployment_site_id: id }) => id));
  const places = before.places.filter(({ deploymentSiteId: id }) => ids.has(id));
  const { deployments: now } = await proved(read, { ...before, places });
  if (!now.some(isOpen)) return proved(read, before);
  const nowOf = new Map(now.map((one) => [one.deployment_site_id, one]));
  return {
    ...before,
    deployments: before.deployments.map((one) => nowOf.get(one.deployment_site_id) ?? one),
  };
}

async function proved(read: Read, clear: ClearPlaced): Promise<ClearProved> {
  const deployments: ClearDeploymentState[] = [];
  for (const part of parts(clear.places, sitesPerRead))
    deployments.push(...(await read(async (work) => clearedAtPlaces(work, clear.facts, part))));
  return { ...clear, deployments };
}
