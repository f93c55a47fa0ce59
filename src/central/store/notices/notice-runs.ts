// Runs of the reports: each period once, continued where it was cut off, and what customers were told already.

import type { StoreTables } from "../engine/schema.ts";
import type { Work } from "../engine/work.ts";

export type RunKind = StoreTables["notice_runs"]["kind"];

export type Run = {
  readonly kind: RunKind;
  readonly period: string;
  /** Days (UTC, `YYYY-MM-DD`) that it covers, both included. */
  readonly from: string;
  readonly until: string;
};

const dayMs = 86_400_000;

export function dayBefore(day: string, days = 1): string {
  return new Date(Date.parse(day) - days * dayMs).toISOString().slice(0, 10);
}

/** The run to be done next, up to the period: one that was cut off, the oldest first, else that of the period, begun. Undefined: all is done, or was before this
 * store sent reports. */
export async function openRun(
  work: Work,
  kind: RunKind,
  period: string,
  daysMax: number,
): Promise<Run | undefined> {
  const { tx, at } = work;
  const runs = () =>
    tx
      .selectFrom("notice_runs")
      .selectAll()
      .where("kind", "=", kind)
      .where("period", "<=", period)
      .limit(1);
  const latest = await runs().orderBy("period", "desc").executeTakeFirst();
  const until = dayBefore(at.slice(0, 10));
  if (latest === undefined) {
    // Nothing is made up for from before there were reports.
    await begin(work, { kind, period, covers_until: until, when_done: at });
    return undefined;
  }
  const cut = await runs().where("when_done", "is", null).orderBy("period").executeTakeFirst();
  if (cut !== undefined) {
    const before = await runs()
      .where("period", "<", cut.period)
      .orderBy("period", "desc")
      .executeTakeFirst();
    return runOf(kind, cut.period, before?.covers_until, cut.covers_until, daysMax);
  }
  if (latest.period === period) return undefined;
  await begin(work, { kind, period, covers_until: until, when_done: null });
  return runOf(kind, period, latest.covers_until, until, daysMax);
}

async function begin(
  { tx, at }: Work,
  run: Pick<StoreTables["notice_runs"], "kind" | "period" | "covers_until" | "when_done">,
): Promise<void> {
  await tx
    .insertInto("notice_runs")
    .values({ ...run, after_customer_id: 0, when_begun: at })
    .execute();
}

/** Makes a run, from the end of the run before it and over no more days than it may have. */
function runOf(
  kind: RunKind,
  period: string,
  coveredUntil: string | undefined,
  until: string,
  daysMax: number,
): Run {
  const first = dayBefore(until, daysMax - 1);
  const next = coveredUntil === undefined ? first : dayBefore(coveredUntil, -1);
  return { kind, period, from: next > first ? next : first, until };
}

/** The next customer of the run, noted as done with this transaction. Undefined: that was all. */
export async function nextOfRun(
  { tx, at }: Work,
  { kind, period }: Run,
): Promise<{ readonly id: number; readonly name: string } | undefined> {
  const row = (set: Partial<StoreTables["notice_runs"]>) =>
    tx
      .updateTable("notice_runs")
      .set(set)
      .where("kind", "=", kind)
      .where("period", "=", period)
      .execute();
  const { after_customer_id: after } = await tx
    .selectFrom("notice_runs")
    .select("after_customer_id")
    .where("kind", "=", kind)
    .where("period", "=", period)
    .executeTakeFirstOrThrow();
  const customer = await tx
    .selectFrom("customers")
    .select(["id", "name"])
    .where("id", ">", after)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  await row(customer === undefined ? { when_done: at } : { after_customer_id: customer.id });
  return customer;
}

/** Returns those of the facts that the customer was not told, and notes them as told. */
export async function newFacts(
  { tx, at }: Work,
  customerId: number,
  facts: readonly string[],
): Promise<ReadonlySet<string>> {
  const fresh = new Set<string>();
  for (const fact of facts) {
    const done = await tx
      .insertInto("told_facts")
      .values({ customer_id: customerId, fact, when_told: at })
      .onConflict((conflict) => conflict.columns(["customer_id", "fact"]).doNothing())
      .executeTakeFirst();
    if ((done.numInsertedOrUpdatedRows ?? 0n) > 0n) fresh.add(fact);
  }
  return fresh;
}

export type VersionChange = {
  readonly customerId: number;
  readonly deploymentSiteId: number;
  readonly name16: string;
  readonly from: string;
  readonly to: string;
};

/** Deployments of which an instance runs another release than when it was last looked at; from now on that is its own. */
export async function versionChanges({ tx, at }: Work): Promise<readonly VersionChange[]> {
  const rows = await tx
    .selectFrom("instances")
    .innerJoin("deployment_sites", "deployment_sites.id", "instances.deployment_site_id")
    .leftJoin("instance_versions", (join) =>
      join
        .onRef("instance_versions.deployment_site_id", "=", "instances.deployment_site_id")
        .onRef("instance_versions.instance_id", "=", "instances.instance_id"),
    )
    .select([
      "deployment_sites.id",
      "deployment_sites.customer_id as customerId",
      "deployment_sites.name16",
      "instances.instance_id as instanceId",
      "instances.agent_version as to",
      "instance_versions.version as from",
    ])
    .where("deployment_sites.when_deleted", "is", null)
    .where("instances.agent_version", "!=", "")
    .where((or) =>
      or.or([
        or("instance_versions.version", "is", null),
        or("instance_versions.version", "!=", or.ref("instances.agent_version")),
      ]),
    )
    .orderBy("deployment_sites.id")
    .orderBy("instances.instance_id")
    .execute();
  const changes = new Map<string, VersionChange>();
  for (const { id, customerId, name16, instanceId, from, to } of rows) {
    await tx
      .insertInto("instance_versions")
      .values({ deployment_site_id: id, instance_id: instanceId, version: to, when_seen: at })
      .onConflict((conflict) =>
        conflict
          .columns(["deployment_site_id", "instance_id"])
          .doUpdateSet({ version: to, when_seen: at }),
      )
      .execute();
    // Of two instances that change alike it is told once.
    if (from !== null)
      changes.set(`${id} ${from} ${to}`, { customerId, deploymentSiteId: id, name16, from, to });
  }
  return [...changes.values()];
}
