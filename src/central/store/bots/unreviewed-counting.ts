// Unreviewed bots as agents report them, summed by domain, day (UTC, of arrival) and name. A batch of an agent's start is added once: its number is
// kept with what it added, in the same transaction.

import type { Report } from "../../../wire/channel.ts";
import { fakeDescription, otherBots } from "../../../wire/other-bots.ts";
import type { Queries, Store } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { TableRow } from "../engine/schema.ts";
import { deletedRows } from "../engine/counts.ts";
import { linkedDomains } from "../journal/site-state.ts";

type Reported = Report["domains"][number]["unreviewed_bots"][number];

/** The days that customers see. */
export const unreviewedDays = 30;
/**
 * The most names of a domain and day that nobody describes, each agent's own included, and as many of fakes: those are
 * made up as well. Further ones are summed in `other`.
 */
const ownNamesMax = 500;
/** A host that was off sends the batch again that it kept; one that was off for longer may have it added twice. */
const batchDays = 90;
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
  const day = at.slice(0, 10);
  for (const { id, name } of await linkedDomains(db, deploymentSiteId)) {
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
  const start = { deployment_site_id: deploymentSiteId, instance_id, boot_id };
  const last = await db
    .selectFrom("counted_batches")
    .select("seq")
    .where((batch) => batch.and(start))
    .executeTakeFirst();
  if (last !== undefined && last.seq >= seq) return false;
  const values = { seq, when_stored: at };
  await db
    .insertInto("counted_batches")
    .values({ ...start, ...values })
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
  const own = await ownNames(db, domain_id, day);
  const rows = new Map<string, TableRow<"unreviewed_bots">>();
  for (const bot of bots) {
    const names = own.get(bot.description);
    const isTooMany = names !== undefined && !names.has(bot.name) && names.size >= ownNamesMax;
    if (!isTooMany) names?.add(bot.name);
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

/** The names of a day that are no known crawler's, by what is said of them instead. */
async function ownNames(
  db: Queries,
  domain_id: number,
  day: string,
): Promise<ReadonlyMap<string | null, Set<string>>> {
  const names = new Map([null, fakeDescription].map((said) => [said, new Set<string>()]));
  const rows = await db
    .selectFrom("unreviewed_bots")
    .select(["name", "description"])
    .where((row) => row.and({ domain_id, day }))
    .where((row) =>
      row.or([row("description", "is", null), row("description", "=", fakeDescription)]),
    )
    .execute();
  for (const { name, description } of rows) names.get(description)?.add(name);
  return names;
}

/** The first day that is shown. */
export function unreviewedSince(now: Date): string {
  return new Date(now.getTime() - (unreviewedDays - 1) * dayMs).toISOString().slice(0, 10);
}

/** How many rows were removed. */
export async function dropUnreviewed(store: Store, now: Date): Promise<number> {
  const batchesFrom = new Date(now.getTime() - batchDays * dayMs).toISOString();
  const days = store.deleteFrom("unreviewed_bots").where("day", "<", unreviewedSince(now));
  const batches = store.deleteFrom("counted_batches").where("when_stored", "<", batchesFrom);
  return (await deletedRows(days)) + (await deletedRows(batches));
}
