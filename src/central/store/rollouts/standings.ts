// What each instance said of its release last, and the order that holds for it.

import {
  isOpen,
  orderOf,
  type ReleaseOrder,
  type ReleaseStanding,
} from "../../../core/rollout/rollout.ts";
import type { ReleaseTold } from "../../../wire/rollout.ts";
import type { Queries } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { TableRow } from "../engine/schema.ts";

export async function saveStanding(
  db: Queries,
  deploymentSiteId: number,
  told: ReleaseTold,
  at: string,
): Promise<void> {
  const { boot_id, version, takes, requests, errors } = told;
  const values = {
    boot_id,
    version,
    takes,
    is_ready: told.ready ? 1 : 0,
    requests,
    errors,
    warnings: JSON.stringify(told.warnings),
    told_order: told.order === null ? null : JSON.stringify(told.order),
    heard_at: at,
  };
  await db
    .insertInto("release_standings")
    .values({ deployment_site_id: deploymentSiteId, instance_id: told.instance_id, ...values })
    .onConflict((conflict) =>
      conflict.columns(["deployment_site_id", "instance_id"]).doUpdateSet(values),
    )
    .execute();
}

export type WantedRelease = {
  readonly order: ReleaseOrder | undefined;
  /** Whether a rollout is under way that the instance is part of. */
  readonly isUnderWay: boolean;
};

/** Returns what holds for an instance: the newest rollout that it is part of says so. */
export async function wantedOf(
  db: Queries,
  deploymentSiteId: number,
  instanceId: string,
): Promise<WantedRelease> {
  const row = await db
    .selectFrom("rollout_members")
    .innerJoin("rollouts", "rollouts.id", "rollout_members.rollout_id")
    .select(["rollouts.token", "rollouts.version", "rollouts.state"])
    .select(["rollout_members.state as member_state", "rollout_members.had"])
    .where("rollout_members.deployment_site_id", "=", deploymentSiteId)
    .where("rollout_members.instance_id", "=", instanceId)
    .orderBy("rollout_members.rollout_id", "desc")
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) return { order: undefined, isUnderWay: false };
  const { token, version: release, member_state: state, had } = row;
  const order = orderOf({ token, release }, { state, had });
  const isUnderWay = isOpen(row) || order !== undefined;
  return { order, isUnderWay };
}

export const memberKey = (deploymentSiteId: number, instanceId: string): string =>
  `${deploymentSiteId}/${instanceId}`;

/** Returns what the instances of these sites said, by `memberKey`. */
export async function standingsOf(
  db: Queries,
  deploymentSiteIds: readonly number[],
): Promise<ReadonlyMap<string, ReleaseStanding>> {
  const found = new Map<string, ReleaseStanding>();
  for (const part of parts([...new Set(deploymentSiteIds)])) {
    const rows = await db
      .selectFrom("release_standings")
      .selectAll()
      .where("deployment_site_id", "in", part)
      .execute();
    for (const row of rows)
      found.set(memberKey(row.deployment_site_id, row.instance_id), standingOf(row));
  }
  return found;
}

function standingOf(row: TableRow<"release_standings">): ReleaseStanding {
  return {
    heardMs: Date.parse(row.heard_at),
    version: row.version,
    bootId: row.boot_id,
    takes: row.takes,
    isReady: row.is_ready === 1,
    requests: row.requests,
    errors: row.errors,
    // Both as `saveStanding` wrote them from a checked message.
    warnings: JSON.parse(row.warnings) as string[],
    order:
      row.told_order === null ? null : (JSON.parse(row.told_order) as ReleaseStanding["order"]),
  };
}
