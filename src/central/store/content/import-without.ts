// Imports of a site with several hosts: any of them may have the directory. One whose settings name none leaves the import to the others; it fails when none is left.

import type { Queries, Tx } from "../engine/database.ts";
import { hostTitles, titleOf } from "../journal/instances.ts";
import { countingOf, listedOf } from "../journal/proof.ts";
import { failImport } from "./import-completion.ts";

/** The code of an agent's refusal whose settings name no directory of the domain. */
export const noSiteCode = "IMPORT_NO_SITE";

/** Notes that an instance has nothing to import. The import fails where no other host of the site is in touch that may have it. */
export async function leaveToOthers(
  tx: Tx,
  importId: string,
  instanceId: string,
  at: string,
): Promise<void> {
  const row = await tx
    .selectFrom("imports")
    .select("without_site")
    .where("id", "=", importId)
    .where("state", "=", "started")
    .executeTakeFirst();
  if (row === undefined) return;
  const without = JSON.stringify(
    [...new Set([...instancesIn(row.without_site), instanceId])].toSorted(),
  );
  await tx
    .updateTable("imports")
    .set({ without_site: without })
    .where("id", "=", importId)
    .execute();
  await failIfNoneIsLeft(tx, importId, at);
}

/** Fails the imports that no host in touch can carry out: the one that was waited for may have gone. Returns how many. */
export async function failLeftOver(db: Queries, now: Date): Promise<number> {
  const rows = await db
    .selectFrom("imports")
    .select("id")
    .where("state", "=", "started")
    .where("without_site", "is not", null)
    .execute();
  let failed = 0;
  for (const { id } of rows) if (await failIfNoneIsLeft(db, id, now.toISOString())) failed += 1;
  return failed;
}

/** Returns whether it failed. */
async function failIfNoneIsLeft(db: Queries, importId: string, at: string): Promise<boolean> {
  const { domain, site, without } = await db
    .selectFrom("imports")
    .innerJoin("domains", "domains.id", "imports.domain_id")
    .select([
      "domains.name as domain",
      "imports.deployment_site_id as site",
      "imports.without_site as without",
    ])
    .where("imports.id", "=", importId)
    .executeTakeFirstOrThrow();
  const byLastSeen = await db
    .selectFrom("instances")
    .select(["instance_id as instanceId", "last_seen as lastSeen"])
    .where("deployment_site_id", "=", site)
    .orderBy("last_seen", "desc")
    .execute();
  const has = new Set(instancesIn(without));
  const nowMs = Date.parse(at);
  const inTouch = countingOf(byLastSeen, nowMs);
  if (!inTouch.every(({ instanceId }) => has.has(instanceId))) return false;
  const titles = await hostTitles(db, [site]);
  const named = (of: readonly { readonly instanceId: string }[]): string =>
    of
      .map(({ instanceId }) => titleOf(titles.get(`${site}/${instanceId}`), instanceId))
      .toSorted()
      .join(", ");
  const away = listedOf(byLastSeen, nowMs).filter(({ instanceId }) => !has.has(instanceId));
  const who =
    inTouch.length === 1
      ? `the settings of ${named(inTouch)} name`
      : `the settings of none of ${named(inTouch)} name`;
  const not = inTouch.length === 1 ? "no" : "a";
  const reason = `${who} ${not} views_dir and devlove_file of ${domain} (sites)`;
  const rest = away.length === 0 ? "" : `; not in touch: ${named(away)}`;
  await failImport(db, importId, reason + rest, at);
  return true;
}

// As `leaveToOthers` wrote it.
const instancesIn = (without: string | null): readonly string[] =>
  JSON.parse(without ?? "[]") as readonly string[];
