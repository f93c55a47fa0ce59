// Runs of the reports: each period once, continued where it was cut off, and what customers were told already.

import type { NoticeTables } from "./notice-tables.ts";
import type { Work } from "./work.ts";

export type RunKind = NoticeTables["notice_runs"]["kind"];

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

/** The run of the period, begun or to be continued; undefined where it is done, or was before this store sent reports. */
export async function openRun(
  { tx, at }: Work,
  kind: RunKind,
  period: string,
  daysMax: number,
): Promise<Run | undefined> {
  const rows = await tx
    .selectFrom("notice_runs")
    .selectAll()
    .where("kind", "=", kind)
    .where("period", "<=", period)
    .orderBy("period", "desc")
    .limit(2)
    .execute();
  const [latest] = rows;
  const until = dayBefore(at.slice(0, 10));
  if (latest === undefined) {
    // Nothing is made up for from before there were reports.
    await begin(at);
    return undefined;
  }
  const isThis = latest.period === period;
  if (isThis && latest.when_done !== null) return undefined;
  const before = isThis ? rows[1] : latest;
  const end = isThis ? latest.covers_until : until;
  const first = dayBefore(end, daysMax - 1);
  const next = before === undefined ? first : dayBefore(before.covers_until, -1);
  const run = { kind, period, from: next > first ? next : first, until: end };
  if (!isThis) await begin(null);
  return run;

  async function begin(whenDone: string | null): Promise<void> {
    await tx
      .insertInto("notice_runs")
      .values({
        kind,
        period,
        covers_until: until,
        after_customer_id: 0,
        when_begun: at,
        when_done: whenDone,
      })
      .execute();
  }
}

/** The next customer of the run, noted as done with this transaction. Undefined: that was all. */
export async function nextOfRun(
  { tx, at }: Work,
  { kind, period }: Run,
): Promise<{ readonly id: number; readonly name: string } | undefined> {
  const row = (set: Partial<NoticeTables["notice_runs"]>) =>
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

/** Those of the facts that the customer was not told; from now on it was. */
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

/** Deployments whose agent runs another release than when it was last looked at; from now on that is the one. */
export async function versionChanges({ tx, at }: Work): Promise<readonly VersionChange[]> {
  const rows = await tx
    .selectFrom("instances")
    .innerJoin("deployment_sites", "deployment_sites.id", "instances.deployment_site_id")
    .leftJoin("site_versions", "site_versions.deployment_site_id", "instances.deployment_site_id")
    .select([
      "deployment_sites.id",
      "deployment_sites.customer_id as customerId",
      "deployment_sites.name16",
      "instances.agent_version as to",
      "instances.last_seen",
      "site_versions.version as from",
    ])
    .where("deployment_sites.when_deleted", "is", null)
    .where("instances.agent_version", "!=", "")
    .orderBy("instances.last_seen", "desc")
    .execute();
  const latest = new Map<number, (typeof rows)[number]>();
  for (const row of rows) if (!latest.has(row.id)) latest.set(row.id, row);
  const changes: VersionChange[] = [];
  for (const { id, customerId, name16, from, to } of latest.values()) {
    if (from === to) continue;
    await tx
      .insertInto("site_versions")
      .values({ deployment_site_id: id, version: to, when_seen: at })
      .onConflict((conflict) =>
        conflict.column("deployment_site_id").doUpdateSet({ version: to, when_seen: at }),
      )
      .execute();
    if (from !== null) changes.push({ customerId, deploymentSiteId: id, name16, from, to });
  }
  return changes;
}

export type ImageBlock = {
  readonly customerId: number;
  readonly domain: string;
  readonly day: string;
  readonly blocked: number;
};

/** Not told yet; from now on they are. */
export async function untoldImageBlocks({ tx, at }: Work): Promise<readonly ImageBlock[]> {
  const rows = await tx
    .selectFrom("image_blocks")
    .innerJoin("domains", "domains.id", "image_blocks.domain_id")
    .select(["domains.customer_id as customerId", "domains.name as domain", "day", "blocked"])
    .where("when_told", "is", null)
    .orderBy("domains.name")
    .execute();
  if (rows.length > 0)
    await tx
      .updateTable("image_blocks")
      .set({ when_told: at })
      .where("when_told", "is", null)
      .execute();
  return rows;
}
