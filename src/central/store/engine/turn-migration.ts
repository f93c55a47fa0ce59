// The step of the store by which messages are counted by customer and recipient, and releases are known by instance.

import { sql } from "kysely";
import { index, table, type Db } from "./migration-tables.ts";

export async function turns(db: Db): Promise<void> {
  await index(db, "outbox", ["customer_id", "recipient", "due_at"]);
  await index(db, "outbox", ["customer_id", "due_at"]);
  await db.schema.dropIndex("outbox_customer_id_when_created").execute();
  await table(db, "instance_versions", {
    deployment_site_id: "→ deployment_sites",
    instance_id: "text!",
    version: "text!",
    when_seen: "text!",
  })
    .addPrimaryKeyConstraint("instance_versions_pk", ["deployment_site_id", "instance_id"])
    .execute();
  // What was known by deployment does not say whose it was; what each runs now is told to nobody as a change.
  await sql`INSERT INTO instance_versions (deployment_site_id, instance_id, version, when_seen)
    SELECT deployment_site_id, instance_id, agent_version, last_seen FROM instances
    WHERE agent_version != '' AND deployment_site_id IN (SELECT id FROM deployment_sites)`.execute(
    db,
  );
  await db.schema.dropTable("site_versions").execute();
}
