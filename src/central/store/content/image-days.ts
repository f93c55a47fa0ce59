// How many variants of a domain's images were made and held back on each day (UTC), summed over all instances.

import { sql } from "kysely";
import {
  addedVariants,
  variantDaysKept,
  type ReportDays,
  type ToldVariants,
  type VariantDay,
  type VariantMark,
} from "../../../core/images/variant-days.ts";
import type { Queries } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";

export type CountingPlace = {
  readonly deploymentSiteId: number;
  readonly instanceId: string;
  readonly domainId: number;
};

/** Adds what a report tells beyond the one before. It arrived at `at`. */
export async function addVariants(
  db: Queries,
  place: CountingPlace,
  told: ToldVariants,
  at: string,
): Promise<void> {
  const found = addedVariants(await markOf(db, place), told, daysAround(at));
  if (found === undefined) return;
  await keepMark(db, place, found.mark);
  for (const one of found.added) await addDay(db, place.domainId, one);
}

function daysAround(at: string): ReportDays {
  const dayOf = (days: number): string =>
    new Date(Date.parse(at) + days * 86_400_000).toISOString().slice(0, 10);
  const oldest = dayOf(1 - variantDaysKept);
  return { today: dayOf(0), yesterday: dayOf(-1), tomorrow: dayOf(1), oldest };
}

async function markOf(
  db: Queries,
  { deploymentSiteId, instanceId, domainId }: CountingPlace,
): Promise<VariantMark | undefined> {
  const row = await db
    .selectFrom("image_marks")
    .select(["since", "made", "blocked", "day", "day_made", "day_blocked"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("instance_id", "=", instanceId)
    .where("domain_id", "=", domainId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { day_made, day_blocked, ...mark } = row;
  return { ...mark, ofDay: { made: day_made, blocked: day_blocked } };
}

async function keepMark(
  db: Queries,
  { deploymentSiteId, instanceId, domainId }: CountingPlace,
  { ofDay, ...mark }: VariantMark,
): Promise<void> {
  const values = { ...mark, day_made: ofDay.made, day_blocked: ofDay.blocked };
  await db
    .insertInto("image_marks")
    .values({
      deployment_site_id: deploymentSiteId,
      instance_id: instanceId,
      domain_id: domainId,
      ...values,
    })
    .onConflict((conflict) =>
      conflict.columns(["deployment_site_id", "instance_id", "domain_id"]).doUpdateSet(values),
    )
    .execute();
}

async function addDay(
  db: Queries,
  domain_id: number,
  { day, made, blocked }: VariantDay,
): Promise<void> {
  await db
    .insertInto("image_days")
    .values({ domain_id, day, made, blocked, when_told: null })
    .onConflict((conflict) =>
      conflict.columns(["domain_id", "day"]).doUpdateSet((row) => ({
        made: row("image_days.made", "+", made),
        blocked: row("image_days.blocked", "+", blocked),
      })),
    )
    .execute();
}

/** Lists the days of a domain on which variants were made or held back, newest first. */
export async function imageDaysOf({ tx }: Work, domainId: number): Promise<readonly VariantDay[]> {
  return tx
    .selectFrom("image_days")
    .select(["day", "made", "blocked"])
    .where("domain_id", "=", domainId)
    .orderBy("day", "desc")
    .execute();
}

export type ImageBlock = VariantDay & { readonly customerId: number; readonly domain: string };

/**
 * Returns the days on which variants were held back that nobody was told of, and notes them as told, each of them once: also where two centrals ask at the
 * same time. What lies before `from` is noted alone, for it is no news any more.
 */
export async function untoldImageBlocks(
  { tx, at }: Work,
  from: string,
): Promise<readonly ImageBlock[]> {
  const rows = await tx
    .updateTable("image_days")
    .set({ when_told: at })
    .where("when_told", "is", null)
    // As the index says it: a bound number would not find it.
    .where(sql<boolean>`blocked > 0`)
    .returning(["domain_id", "day", "made", "blocked"])
    .execute();
  const blocks: ImageBlock[] = [];
  for (const { domain_id, ...counted } of rows.filter(({ day }) => day >= from)) {
    const domain = await tx
      .selectFrom("domains")
      .select(["customer_id as customerId", "name as domain"])
      .where("id", "=", domain_id)
      .executeTakeFirst();
    if (domain !== undefined) blocks.push({ ...domain, ...counted });
  }
  return blocks.toSorted((a, b) => (`${a.domain} ${a.day}` < `${b.domain} ${b.day}` ? -1 : 1));
}
