// Imports that nobody carries out: given up when the deployment's agent is not in touch for too long, with words that say so.

import type { Queries } from "../engine/database.ts";
import { failImport } from "./import-completion.ts";
import { seenLatelyMs } from "../journal/proof.ts";

/**
 * The deadline where no agent ever was: long enough to start one, short enough to notice a wrong deployment.
 */
const neverSeenMs = 600_000;
/** An agent that is away begins when it comes back; one that is away for longer than a day is not counted on. */
const awayMs = 86_400_000;

/** How many were given up. One whose agent is in touch has no deadline: its end is the agent's receipt. */
export async function failOverdueImports(db: Queries, now: Date): Promise<number> {
  const rows = await db
    .selectFrom("imports")
    .leftJoin("instances", "instances.deployment_site_id", "imports.deployment_site_id")
    .select(["imports.id", "imports.deployment_site_id as site", "imports.when_started as started"])
    .select(({ fn }) => fn.max("instances.last_seen").as("seen"))
    .where("imports.state", "=", "started")
    .where("imports.when_started", "<=", new Date(now.getTime() - neverSeenMs).toISOString())
    .groupBy(["imports.id", "imports.deployment_site_id", "imports.when_started"])
    .execute();
  let failed = 0;
  for (const { id, site, started, seen } of rows) {
    const reason = overdue(site, { started, seen: seen ?? undefined }, now);
    if (reason === undefined) continue;
    await failImport(db, id, reason, now.toISOString());
    failed += 1;
  }
  return failed;
}

/** Pure. Undefined: it goes on. */
export function overdue(
  siteId: number,
  { started, seen }: { readonly started: string; readonly seen: string | undefined },
  now: Date,
): string | undefined {
  const since = (at: string): number => now.getTime() - Date.parse(at);
  const of = `the agent of deployment site ${siteId}`;
  if (seen === undefined)
    return since(started) < neverSeenMs
      ? undefined
      : `${of} has never connected: the import was given up after ${neverSeenMs / 60_000} minutes`;
  if (since(seen) <= seenLatelyMs || Math.min(since(seen), since(started)) < awayMs)
    return undefined;
  return `${of} was last seen at ${seen}: the import was given up after ${awayMs / 3_600_000} hours`;
}
