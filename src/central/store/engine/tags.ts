// Tags of deployment sites: trimmed, case kept, each once, in the order in which they were given.

import type { Queries, Tx } from "./database.ts";

/** Tags of every site that is not deleted; a site without tags has an empty list. */
export async function tagsOf(
  db: Queries,
  customerId: number,
): Promise<ReadonlyMap<number, readonly string[]>> {
  const rows = await db
    .selectFrom("deployment_sites")
    .leftJoin(
      "deployment_site_tags",
      "deployment_site_tags.deployment_site_id",
      "deployment_sites.id",
    )
    .select(["deployment_sites.id", "deployment_site_tags.tag"])
    .where("deployment_sites.customer_id", "=", customerId)
    .where("deployment_sites.when_deleted", "is", null)
    .orderBy("deployment_sites.id")
    .orderBy("deployment_site_tags.position")
    .execute();
  const tags = new Map<number, string[]>();
  for (const { id, tag } of rows) {
    const list = tags.get(id) ?? [];
    if (tag !== null) list.push(tag);
    tags.set(id, list);
  }
  return tags;
}

export async function replaceTags(
  tx: Tx,
  deploymentSiteId: number,
  tags: readonly string[],
): Promise<void> {
  await tx
    .deleteFrom("deployment_site_tags")
    .where("deployment_site_id", "=", deploymentSiteId)
    .execute();
  if (tags.length === 0) return;
  await tx
    .insertInto("deployment_site_tags")
    .values(tags.map((tag, position) => ({ deployment_site_id: deploymentSiteId, tag, position })))
    .execute();
}
