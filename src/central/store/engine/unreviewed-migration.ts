// The step of the store that counts unreviewed bots.

import { index, table, type Db } from "./migration-tables.ts";

export async function unreviewedBots(db: Db): Promise<void> {
  await table(db, "unreviewed_bots", {
    domain_id: "→ domains",
    day: "text!",
    name: "text!",
    description: "text",
    requests: "bigint!",
  })
    .addPrimaryKeyConstraint("unreviewed_bots_pk", ["domain_id", "day", "name"])
    .execute();
  await index(db, "unreviewed_bots", ["day"]);
  await table(db, "counted_batches", {
    deployment_site_id: "→ deployment_sites",
    instance_id: "text!",
    boot_id: "text!",
    seq: "bigint!",
    when_stored: "text!",
  })
    .addPrimaryKeyConstraint("counted_batches_pk", ["deployment_site_id", "instance_id", "boot_id"])
    .execute();
}
