// `?wait=`: the answer comes when the connected agents have proved what was asked for, or the time is up.

import { sleep } from "../../base/wait.ts";
import { waitDefaultS, waitMaxS } from "../../wire/customer/proof.ts";
import { invalid, type ProblemAnswer } from "./http/answer.ts";
import type { Live, Ports } from "./deps.ts";

export function waitFault(query: URLSearchParams): ProblemAnswer | undefined {
  return waitMsOf(query) === undefined
    ? invalid([{ path: "?wait", message: `must be 0 to ${waitMaxS} seconds` }])
    : undefined;
}

/** Returns the milliseconds to wait, or undefined if the parameter is no valid number. */
export function waitMsOf(query: URLSearchParams): number | undefined {
  const text = query.get("wait") ?? String(waitDefaultS);
  return /^\d{1,2}(?:\.\d{1,3})?$/.test(text) && Number(text) <= waitMaxS
    ? Number(text) * 1_000
    : undefined;
}

/** A deployment with its instances, as a proof tells of them. */
export type ProvedAt<Instance extends { readonly instance_id: string }> = {
  readonly deployment_site_id: number;
  readonly instances: readonly Instance[];
};

type Links = Pick<Live, "isLive" | "isExpected">;

/** Returns whether an agent of the site, or that instance of it, can tell something: it is connected, or between two channels. */
export function canTell(live: Links, deploymentSiteId: number, instance?: string): boolean {
  return live.isLive(deploymentSiteId, instance) || live.isExpected(deploymentSiteId, instance);
}

/**
 * Returns whether a connected instance of the deployment has something to tell yet. One that is connected and not among those that the
 * proof knows is new, and has. An instance without a link tells nothing, however long anybody waits.
 */
export function isAwaited<Instance extends { readonly instance_id: string }>(
  { deployment_site_id: id, instances }: ProvedAt<Instance>,
  isOpen: (instance: Instance) => boolean,
  live: Links,
): boolean {
  const connected = instances.filter((one) => canTell(live, id, one.instance_id));
  return connected.length > 0 ? connected.some(isOpen) : canTell(live, id);
}

/** A read that takes longer is of very many deployments: for as long as it took, though no longer than that, others have the store. */
const [longReadMs, restMostMs] = [20, 250];

/**
 * Reads again at each receipt, until the condition ends or the signal aborts. `current` gets what it returned
 * before.
 */
export async function whileTrue<T>(
  condition: (found: T) => boolean,
  current: (before?: T) => Promise<T | undefined>,
  receipts: Ports["receipts"],
  signal: AbortSignal,
): Promise<T | undefined> {
  for (let before: T | undefined; ;) {
    const read = new AbortController();
    // Asked for before reading, so that a receipt in between is not missed.
    const next = receipts.next(AbortSignal.any([signal, read.signal]));
    const began = performance.now();
    const found = await current(before);
    const tookMs = performance.now() - began;
    if (found === undefined || !condition(found) || signal.aborted) {
      read.abort();
      await next;
      return found;
    }
    before = found;
    await next;
    if (tookMs > longReadMs) await sleep(Math.min(tookMs, restMostMs), signal);
  }
}
