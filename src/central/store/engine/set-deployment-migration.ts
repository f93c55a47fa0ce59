// The step of the store by which it is known where in each journal a bot set was told last: the receipts of that entry prove that marks are in force.

import { table, type Db } from "./migration-tables.ts";

export async function setDeployments(db: Db): Promise<void> {
  // Sets that were told before have no row until their next change, or the next link: what is proved of them is not known.
  await table(db, "bot_set_deployments", {
    bot_set_id: "→ bot_sets",
    deployment_site_id: "integer!",
    version: "integer!",
    seq: "bigint!",
  })
    .addPrimaryKeyConstraint("bot_set_deployments_pk", ["bot_set_id", "deployment_site_id"])
    .execute();
}
