// Rollouts as they are stored, with their members; one step of each in one transaction.

import { AccelError } from "../../../core/faults.ts";
import type {
  MemberBefore,
  Rollout,
  RolloutMember,
  RolloutPlan,
  RolloutState,
} from "../../../core/rollout/rollout.ts";
import {
  changedMembers,
  spreadOverSites,
  stepRollout,
} from "../../../core/rollout/rollout-step.ts";
import { storeEpoch, type Queries, type Tx } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { TableRow } from "../engine/schema.ts";
import { tagsOf } from "../engine/tags.ts";
import type { Work } from "../engine/work.ts";
import { hostTitles, titleOf } from "../journal/instances.ts";
import { memberKey, standingsOf } from "./standings.ts";

export type StoredRollout = {
  readonly id: number;
  readonly customerId: number;
  readonly tag: string | null;
  readonly startedBy: string;
  readonly endedAt: string | null;
  readonly rollout: Rollout;
};

export type RolloutAsked = {
  readonly customerId: number;
  readonly release: string;
  readonly tag: string | undefined;
  readonly plan: RolloutPlan;
  readonly startedBy: string;
};

const open = ["running", "paused", "returning"] as const satisfies readonly RolloutState[];

/** Starts a rollout over the instances that were seen within the last day. Throws CONFLICT or NOT_FOUND. */
export async function createRollout(work: Work, asked: RolloutAsked): Promise<StoredRollout> {
  const { tx, at, randomHex } = work;
  const { customerId, release, tag, plan, startedBy } = asked;
  const under = await tx
    .selectFrom("rollouts")
    .select("id")
    .where("customer_id", "=", customerId)
    .where("state", "in", open)
    .executeTakeFirst();
  if (under !== undefined)
    throw new AccelError("CONFLICT", `rollout ${under.id} of this customer is not over`);
  const instances = await instancesOf(work, customerId, tag);
  if (instances.length === 0)
    throw new AccelError(
      "NOT_FOUND",
      `customer ${customerId} has no host ${tag === undefined ? "" : `with the tag ${tag} `}that was seen within a day`,
    );
  const { id } = await tx
    .insertInto("rollouts")
    .values({
      customer_id: customerId,
      token: randomHex(6),
      version: release,
      tag: tag ?? null,
      plan: JSON.stringify(plan),
      state: "running",
      reason: null,
      budget: plan.canary,
      misses_seen: 0,
      started_by: startedBy,
      when_started: at,
      when_ended: null,
      epoch: await storeEpoch(tx),
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await leaveStuck(tx, customerId, at);
  const members = spreadOverSites(instances).map((one, position) => ({
    rollout_id: id,
    deployment_site_id: one.siteId,
    instance_id: one.instanceId,
    position,
    state: "waiting" as const,
    reason: null,
    had: one.version,
    since: at,
    was: null,
    boot_id: null,
    restarts: 0,
    uneasy_since: null,
  }));
  for (const part of parts(members)) await tx.insertInto("rollout_members").values(part).execute();
  return rolloutOf(tx, id);
}

/** What a host could not be brought back from before does not count any more: the newest rollout says what it is to run. */
async function leaveStuck(tx: Tx, customerId: number, at: string): Promise<void> {
  await tx
    .updateTable("rollout_members")
    .set({ state: "stays", reason: "another rollout began before it went back", since: at })
    .where("state", "=", "stuck")
    .where("rollout_id", "in", (query) =>
      query.selectFrom("rollouts").select("id").where("customer_id", "=", customerId),
    )
    .execute();
}

async function instancesOf({ tx, at }: Work, customerId: number, tag: string | undefined) {
  const tags = await tagsOf(tx, customerId);
  const siteIds = [...tags].flatMap(([id, of]) =>
    tag === undefined || of.includes(tag) ? [id] : [],
  );
  const found: { siteId: number; instanceId: string; version: string }[] = [];
  for (const part of parts(siteIds)) {
    const rows = await tx
      .selectFrom("instances")
      .select(["deployment_site_id", "instance_id", "agent_version"])
      .where("deployment_site_id", "in", part)
      .where("last_seen", ">", iso(Date.parse(at) - dayMs))
      .orderBy("deployment_site_id")
      .orderBy("instance_id")
      .execute();
    for (const row of rows)
      found.push({
        siteId: row.deployment_site_id,
        instanceId: row.instance_id,
        version: row.agent_version,
      });
  }
  return found;
}

const dayMs = 86_400_000;

/** Throws NOT_FOUND. */
export async function rolloutOf(db: Queries, id: number): Promise<StoredRollout> {
  const row = await db.selectFrom("rollouts").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined)
    throw new AccelError("NOT_FOUND", `there is no rollout ${id}`, {
      hint: "`accel-central rollout list` has the number of each.",
    });
  const members = await db
    .selectFrom("rollout_members")
    .selectAll()
    .where("rollout_id", "=", id)
    .orderBy("position")
    .execute();
  return stored(row, members);
}

export async function lastRolloutId(db: Queries): Promise<number | undefined> {
  const row = await db
    .selectFrom("rollouts")
    .select("id")
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Returns the newest rollout of the same customer that came after; undefined: there is none. */
export async function newerRolloutId(
  db: Queries,
  { id, customerId }: Pick<StoredRollout, "id" | "customerId">,
): Promise<number | undefined> {
  const row = await db
    .selectFrom("rollouts")
    .select("id")
    .where("customer_id", "=", customerId)
    .where("id", ">", id)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Rollouts in order of id, the newest last. */
export async function listRollouts(
  { tx }: Work,
  customerId: number | undefined,
  range: { readonly after: number; readonly limit: number },
) {
  let query = tx
    .selectFrom("rollouts")
    .select(["id", "customer_id", "version as release", "tag", "state", "reason"])
    .select(["started_by", "when_started", "when_ended"])
    .where("id", ">", range.after);
  if (customerId !== undefined) query = query.where("customer_id", "=", customerId);
  return query.orderBy("id").limit(range.limit).execute();
}

/** Returns the rollouts that have a next step: those that are not over, and those with a host that is still to go back. */
export async function steppedIds(db: Queries): Promise<readonly number[]> {
  const rows = await db
    .selectFrom("rollouts")
    .select("id")
    .where((where) =>
      where.or([
        where("state", "in", open),
        where(
          "id",
          "in",
          where.selectFrom("rollout_members").select("rollout_id").where("state", "=", "stuck"),
        ),
      ]),
    )
    .orderBy("id")
    .execute();
  return rows.map(({ id }) => id);
}

export type NewestRollout = Pick<Rollout, "release" | "state" | "reason"> & {
  readonly id: number;
  /** How many hosts are still to go back. */
  readonly stuck: number;
};

/** Returns the newest rollout of each customer. */
export async function newestRollouts(db: Queries): Promise<readonly NewestRollout[]> {
  const rows = await db
    .selectFrom("rollouts")
    .leftJoin("rollout_members", (join) =>
      join
        .onRef("rollout_members.rollout_id", "=", "rollouts.id")
        .on("rollout_members.state", "=", "stuck"),
    )
    .select(["rollouts.id", "rollouts.version", "rollouts.state", "rollouts.reason"])
    .select((build) => build.fn.count<number | string>("rollout_members.instance_id").as("stuck"))
    .where("rollouts.id", "in", (query) =>
      query
        .selectFrom("rollouts")
        .select((build) => build.fn.max("id").as("id"))
        .groupBy("customer_id"),
    )
    .groupBy(["rollouts.id", "rollouts.version", "rollouts.state", "rollouts.reason"])
    .orderBy("rollouts.id")
    .execute();
  // PostgreSQL counts in bigints, which come as texts.
  return rows.map(({ version: release, stuck, ...row }) => ({
    ...row,
    release,
    stuck: Number(stuck),
  }));
}

export type Stepped = { readonly before: StoredRollout; readonly after: Rollout };

/** Takes one step, with all that agents have said until now. */
export async function takeStep(work: Work, id: number, upSinceMs: number): Promise<Stepped> {
  const before = await rolloutOf(work.tx, id);
  const standings = await standingsOf(
    work.tx,
    before.rollout.members.map(({ siteId }) => siteId),
  );
  const time = { nowMs: Date.parse(work.at), upSinceMs };
  const stepped = stepRollout(before.rollout, (key) => standings.get(key), time);
  const after = { ...stepped, reason: await namedReason(work.tx, before.rollout, stepped) };
  await saveRollout(work, before, after);
  return { before, after };
}

/** Returns the reason with the name of its host in place of its id, where the step gave a new one. */
async function namedReason(
  tx: Tx,
  before: Rollout,
  { reason, members }: Rollout,
): Promise<Rollout["reason"]> {
  if (reason === null || reason === before.reason) return reason;
  const member = members.find(({ key }) => reason.startsWith(`${key}: `));
  if (member === undefined) return reason;
  const [siteId, instanceId] = idsOf(member);
  const name = titleOf((await hostTitles(tx, [siteId])).get(member.key), instanceId);
  return `${siteId}/${name}${reason.slice(member.key.length)}`;
}

/** Writes what is another one now. */
export async function saveRollout(
  { tx, at }: Work,
  { id, rollout: before }: StoredRollout,
  after: Rollout,
): Promise<void> {
  for (const member of changedMembers(before, after)) {
    const [siteId, instanceId] = idsOf(member);
    await tx
      .updateTable("rollout_members")
      .set({
        state: member.state,
        reason: member.reason,
        had: member.had,
        since: iso(member.sinceMs),
        was: member.before === null ? null : JSON.stringify(member.before),
        boot_id: member.bootId,
        restarts: member.restarts,
        uneasy_since: member.uneasySinceMs === null ? null : iso(member.uneasySinceMs),
      })
      .where("rollout_id", "=", id)
      .where("deployment_site_id", "=", siteId)
      .where("instance_id", "=", instanceId)
      .execute();
  }
  const { state, reason, budget, missesSeen } = after;
  const isOver = state === "done" || state === "returned";
  const isChanged =
    state !== before.state ||
    reason !== before.reason ||
    budget !== before.budget ||
    missesSeen !== before.missesSeen;
  if (!isChanged) return;
  await tx
    .updateTable("rollouts")
    .set({ state, reason, budget, misses_seen: missesSeen, when_ended: isOver ? at : null })
    .where("id", "=", id)
    .execute();
}

const restored = "central was restored from a backup while it was under way";

/**
 * Ends what was under way when the store was backed up: since then hosts may have gone on, or back, and are not to be ordered by what was then. Returns the ids.
 */
export async function endRestored({ tx, at }: Work): Promise<readonly number[]> {
  const epoch = await storeEpoch(tx);
  const rows = await tx.selectFrom("rollouts").select("id").where("epoch", "!=", epoch).execute();
  const ids = rows.map(({ id }) => id);
  const ended: number[] = [];
  for (const part of parts(ids)) {
    await tx
      .updateTable("rollout_members")
      .set({ state: "stays", reason: restored, since: at })
      .where("rollout_id", "in", part)
      .where("state", "in", ["waiting", "asked", "watched", "going_back", "stuck"])
      .execute();
    const changed = await tx
      .updateTable("rollouts")
      .set({ state: "done", reason: restored, when_ended: at })
      .where("id", "in", part)
      .where("state", "in", open)
      .returning("id")
      .execute();
    ended.push(...changed.map(({ id }) => id));
    await tx.updateTable("rollouts").set({ epoch }).where("id", "in", part).execute();
  }
  return ended;
}

function stored(
  row: TableRow<"rollouts">,
  members: readonly TableRow<"rollout_members">[],
): StoredRollout {
  return {
    id: row.id,
    customerId: row.customer_id,
    tag: row.tag,
    startedBy: row.started_by,
    endedAt: row.when_ended,
    rollout: {
      token: row.token,
      release: row.version,
      plan: JSON.parse(row.plan) as RolloutPlan, // As `createRollout` wrote it.
      state: row.state,
      reason: row.reason,
      budget: row.budget,
      missesSeen: row.misses_seen,
      startedMs: Date.parse(row.when_started),
      members: members.map(memberOf),
    },
  };
}

function memberOf(row: TableRow<"rollout_members">): RolloutMember {
  return {
    key: memberKey(row.deployment_site_id, row.instance_id),
    siteId: row.deployment_site_id,
    state: row.state,
    reason: row.reason,
    had: row.had,
    sinceMs: Date.parse(row.since),
    before: row.was === null ? null : (JSON.parse(row.was) as MemberBefore), // As `saveRollout` wrote it.
    bootId: row.boot_id,
    restarts: row.restarts,
    uneasySinceMs: row.uneasy_since === null ? null : Date.parse(row.uneasy_since),
  };
}

/** Returns the site and the instance of a member. */
export function idsOf({ key, siteId }: Pick<RolloutMember, "key" | "siteId">): [number, string] {
  return [siteId, key.slice(String(siteId).length + 1)];
}

const iso = (ms: number): string => new Date(ms).toISOString();
