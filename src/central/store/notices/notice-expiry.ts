// Rows of mail, recovery, reports and alerts that have outlived their use.

import { variantDaysKept } from "../../../core/images/variant-days.ts";
import type { Store } from "../engine/database.ts";
import { dropEndedAlerts } from "./alerts.ts";
import { dropSentMessages } from "./outbox.ts";

const dayMs = 86_400_000;
/** Longer than any reminder: what was told once is not told anew. */
const toldDays = 400;
/** The weekly report compares a week with the one before. */
const trafficDays = 60;

/** How many rows were removed. */
export async function dropOldNotices(store: Store, now: Date, keepMs: number): Promise<number> {
  const before = (days: number): string =>
    new Date(now.getTime() - days * dayMs).toISOString().slice(0, 10);
  const removed = [
    await store
      .deleteFrom("recoveries")
      .where("expires_at", "<=", now.toISOString())
      .executeTakeFirst(),
    await store
      .deleteFrom("told_facts")
      .where("when_told", "<", before(toldDays))
      .executeTakeFirst(),
    await store.deleteFrom("notice_runs").where("period", "<", before(toldDays)).executeTakeFirst(),
    await store
      .deleteFrom("traffic_days")
      .where("day", "<", before(trafficDays))
      .executeTakeFirst(),
    await store
      .deleteFrom("image_days")
      .where("day", "<", before(variantDaysKept))
      .executeTakeFirst(),
  ];
  const rows = removed.reduce((sum, { numDeletedRows }) => sum + Number(numDeletedRows), 0);
  const alerts = Number(await dropEndedAlerts(store, now));
  return rows + alerts + (await dropSentMessages(store, now, keepMs));
}
