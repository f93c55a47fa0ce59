// Asks the connected agents what a clear would hit, and returns what they answer. Nothing is journaled.

import type { PlannedClear } from "../../core/patterns/clear-items.ts";
import type { ClearNamed, DryRun, DryRunDeployment } from "../../wire/customer/clear.ts";
import { wireItems } from "../store/journal/clears.ts";
import { dryRunSamplesMax } from "../../wire/ask.ts";
import type { InstanceDryRun, Live } from "./deps.ts";

/** A dry run as it was asked for; the endpoint's `handle`, which reads the store, makes it. */
export type DryRunAsked = {
  readonly domain: string;
  readonly host: string | null;
  /** As they were given. */
  readonly patterns: readonly string[];
  readonly named: ClearNamed;
  /** What agents are asked. */
  readonly planned: PlannedClear;
  readonly sites: readonly { readonly id: number; readonly lastSeen: string | undefined }[];
};

export async function askAgents(
  live: Pick<Live, "dryRun">,
  { domain, host, patterns, named, planned, sites }: DryRunAsked,
  waitMs: number,
  gone: AbortSignal,
): Promise<DryRun> {
  const { items } = planned;
  const question = {
    domain,
    host: planned.host,
    patterns: [...planned.patterns],
    ...(items !== undefined && { items: wireItems(items) }),
  };
  const deployments = await Promise.all(
    sites.map(async ({ id, lastSeen }) => {
      const instances = await live.dryRun(id, question, waitMs, gone);
      return dryRunAt(id, lastSeen, instances);
    }),
  );
  return { dry_run: true, domain: host ?? domain, patterns: [...patterns], ...named, deployments };
}

/**
 * Combines the instances' answers. Pure. Counts are sums; the samples are those of the first instances that
 * have any.
 */
export function dryRunAt(
  deploymentSiteId: number,
  lastSeen: string | undefined,
  answers: readonly InstanceDryRun[],
): DryRunDeployment {
  const instances = answers.map(({ instanceId, result }) => {
    const failed = result?.error !== undefined;
    const isCounted = result !== undefined && !failed && result.over_budget !== true;
    return {
      instance_id: instanceId,
      state: result === undefined ? "pending" : failed ? "failed" : "answered",
      matched: isCounted ? result.matched : null,
      ...(result?.over_budget === true && { over_budget: true }),
      ...(result?.error !== undefined && { error: result.error }),
    } as const;
  });
  const counts = instances.flatMap(({ matched }) => matched ?? []);
  const error = instances.find((instance) => "error" in instance)?.error;
  const worst = (["failed", "pending", "answered"] as const).find((state) =>
    instances.some((instance) => instance.state === state),
  );
  const state = worst ?? "unreachable";
  return {
    deployment_site_id: deploymentSiteId,
    state,
    matched: counts.length === 0 ? null : counts.reduce((sum, count) => sum + count, 0),
    ...(instances.some((instance) => "over_budget" in instance) && { over_budget: true }),
    ...(error !== undefined && { error }),
    samples: answers.flatMap(({ result }) => result?.samples ?? []).slice(0, dryRunSamplesMax),
    ...(state !== "answered" && lastSeen !== undefined && { last_seen: lastSeen }),
    instances,
  };
}
