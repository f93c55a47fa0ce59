// Where the journals of many sites end, and how often the sites were shut: what is asked every second for whoever may have missed a word of it.

import type { Tx } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";

export type SiteMark = { readonly headSeq: number; readonly shutCount: number };

export async function siteMarks(
  tx: Tx,
  siteIds: readonly number[],
): Promise<ReadonlyMap<number, SiteMark>> {
  const marks = new Map<number, SiteMark>();
  for (const part of parts(siteIds)) {
    const rows = await tx
      .selectFrom("deployment_sites")
      .select(["id", "journal_head", "shut_count"])
      .where("id", "in", part)
      .execute();
    for (const { id, journal_head: headSeq, shut_count: shutCount } of rows)
      marks.set(id, { headSeq, shutCount });
  }
  return marks;
}
