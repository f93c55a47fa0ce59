// Who goes by a policy's word on all unknown bots alone: instances of a release that refuses what its site was told of classes last.

import { bodyDigest } from "../../../core/journal/journal-chain.ts";
import type { JournalBody } from "../../../wire/journal.ts";
import type { Queries } from "../engine/database.ts";

export type ClassesRefused = {
  readonly siteId: number;
  readonly name16: string;
  readonly instanceId: string;
};

/** Who refuses this misses nothing. */
const noClasses: JournalBody<"policy.classes"> = { domains: [] };

/**
 * Returns the instances of these sites that refused it, in order of site and instance; without `siteIds` those of all
 * sites. `seenSince` leaves out instances that were seen last before.
 */
export async function refusedClasses(
  db: Queries,
  { siteIds, seenSince }: { readonly siteIds?: readonly number[]; readonly seenSince?: string },
): Promise<readonly ClassesRefused[]> {
  let query = db
    .selectFrom("told_classes as told")
    .innerJoin("deployment_sites as site", "site.id", "told.deployment_site_id")
    .innerJoin("journal", (join) =>
      join
        .onRef("journal.deployment_site_id", "=", "told.deployment_site_id")
        .onRef("journal.seq", "=", "told.seq"),
    )
    .innerJoin("instances", "instances.deployment_site_id", "told.deployment_site_id")
    .crossJoin("receipts") // SQLite keeps the order of a cross join; it would read all receipts there are.
    .select(["site.id as siteId", "site.name16", "instances.instance_id as instanceId"])
    .where("site.when_deleted", "is", null)
    .where("journal.body_digest", "!=", bodyDigest(noClasses))
    .whereRef("receipts.deployment_site_id", "=", "told.deployment_site_id")
    .whereRef("receipts.instance_id", "=", "instances.instance_id")
    .whereRef("receipts.seq", "=", "told.seq")
    .where("receipts.phase", "=", "refused");
  if (siteIds !== undefined) query = query.where("told.deployment_site_id", "in", siteIds);
  if (seenSince !== undefined) query = query.where("instances.last_seen", ">=", seenSince);
  return query.orderBy("site.id").orderBy("instances.instance_id").execute();
}
