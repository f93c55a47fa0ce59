// The step of the store that remembers restores.

import { table, type Db } from "./migration-tables.ts";

export async function restores(db: Db): Promise<void> {
  await table(db, "restores", {
    id: "id",
    when_backed_up: "text!",
    when_restored: "text!",
    epoch_before: "text!",
    clear_now: "integer!",
  }).execute();
}
