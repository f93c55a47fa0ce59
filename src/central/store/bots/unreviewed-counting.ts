// Unreviewed bots as agents report them, summed by domain, day (UTC, of arrival) and name. A batch of an agent's start is added once: its number is
// kept with what it added, in the same transaction.

import { otherBots, type Report } from "../../../wire/channel.ts";
import type { Queries, Store } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";

type Reported = Report["domains"][number]["unreviewed_bots"][number];
type Row = {
  domain_id: number;
  day: string;
  name: string;
  description: string | null;
  requests: number;
};

/** The days that customers see. */
export const unreviewedDays = 30;
/**
 * The most names of a domain and day that nobody describes, each agent's own included. Further ones are
 * summed in `other`.
 */
const ownNamesMax = 500;
/** Longer than any repetition of a batch can be under way. */
const batchDays = 7;
const dayMs = 86_400_000;
/** Five values a row. */
const rowsPerStatement = 1_000;

/** Adds counts in a transaction. Nothing is kept of domains that are not linked to the site. */
export async function addUnreviewed(
  db: Queries,
  deploymentSiteId: number,
  report: Report,
  at: string,
): Promise<void> {
  if (!(await isNewBatch(db, deploymentSiteId, report, at))) return;
  const reported = new Map(
    report.domains.flatMap(({ domain, unreviewed_bots: bots }) =>
      bots.length === 0 ? [] : [[domain, bots] as const],
    ),
  );
  if (reported.size === 0) return;
  const linked = await db
    .selectFrom("domain_links")
    .innerJoin("domains", "domains.id", "domain_links.domain_id")
    .select(["domains.id", "domains.name"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .execute();
  const day = at.slice(0, 10);
  for (const { id, name } of linked) {
    const bots = reported.get(name);
    if (bots !== undefined) await addToDay(db, id, day, bots);
  }
}

/** False: there is nothing to add, or it is added already. */
async function isNewBatch(
  db: Queries,
  deploymentSiteId: number,
  { instance_id, counted }: Report,
  at: string,
): Promise<boolean> {
  if (counted === undefined) return false;
  const { boot_id, seq } = counted;
  const last = await db
    .selectFrom("counted_batches")
    .select("seq")
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("instance_id", "=", instance_id)
    .where("boot_id", "=", boot_id)
    .executeTakeFirst();
  if (last !== undefined && last.seq >= seq) return false;
  const values = { seq, when_stored: at };
  await db
    .insertInto("counted_batches")
    .values({ deployment_site_id: deploymentSiteId, instance_id, boot_id, ...values })
    .onConflict((conflict) =>
      conflict.columns(["deployment_site_id", "instance_id", "boot_id"]).doUpdateSet(values),
    )
    .execute();
  return true;
}

async function addToDay(
  db: Queries,
  domain_id: number,
  day: string,
  bots: readonly Reported[],
): Promise<void> {
  const known = await db
    .selectFrom("unreviewed_bots")
    .select("name")
    .where("domain_id", "=", domain_id)
    .where("day", "=", day)
    .where("description", "is", null)
    .execute();
  const own = new Set(known.map(({ name }) => name));
  const rows = new Map<string, Row>();
  for (const bot of bots) {
    const isTooMany = bot.description === null && !own.has(bot.name) && own.size >= ownNamesMax;
    if (bot.description === null && !isTooMany) own.add(bot.name);
    const { name, description } = isTooMany ? otherBots : bot;
    const requests = bot.requests + (rows.get(name)?.requests ?? 0);
    rows.set(name, { domain_id, day, name, description, requests });
  }
  for (const part of parts([...rows.values()], rowsPerStatement)) {
    await db
      .insertInto("unreviewed_bots")
      .values(part)
      .onConflict((conflict) =>
        conflict.columns(["domain_id", "day", "name"]).doUpdateSet((row) => ({
          description: row.ref("excluded.description"),
          requests: row("unreviewed_bots.requests", "+", row.ref("excluded.requests")),
        })),
      )
      .execute();
  }
}

/** The first day that is shown. */
export function unreviewedSince(now: Date): string {
  return new Date(now.getTime() - (unreviewedDays - 1) * dayMs).toISOString().slice(0, 10);
}

/** How many rows were removed. */
export async function dropUnreviewed(store: Store, now: Date): Promise<number> {
  const days = await store
    .deleteFrom("unreviewed_bots")
    .where("day", "<", unreviewedSince(now))
    .executeTakeFirst();
  const batches = await store
    .deleteFrom("counted_batches")
    .where("when_stored", "<", new Date(now.getTime() - batchDays * dayMs).toISOString())
    .executeTakeFirst();
  return Number(days.numDeletedRows) + Number(batches.numDeletedRows);
}
