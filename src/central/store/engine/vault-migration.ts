// The step of the store that adds symmetric keys and certificates. Sites that are there get their first key at the start (first-keys.ts): it takes the store's key.

import { index, table, type Db } from "./migration-tables.ts";

export async function vault(db: Db): Promise<void> {
  await table(db, "vaults", {
    deployment_site_id: "→ deployment_sites",
    keys_made: "integer!",
    keys_seq: "bigint!",
    certificates_seq: "bigint",
    certificates_blob: "text",
  })
    .addPrimaryKeyConstraint("vaults_pk", ["deployment_site_id"])
    .execute();
  await table(db, "symmetric_keys", {
    id: "id",
    deployment_site_id: "→ deployment_sites",
    name: "text!",
    key_sealed: "text!",
    version: "integer!",
    sealed: "text!",
    when_created: "text!",
  })
    .addUniqueConstraint("symmetric_keys_name", ["name"])
    .execute();
  await index(db, "symmetric_keys", ["deployment_site_id"]);
  await table(db, "certificates", {
    id: "id",
    deployment_site_id: "→ deployment_sites",
    names: "text!",
    not_before: "text!",
    not_after: "text!",
    fingerprint: "text!",
    chain: "text!",
    private_key_sealed: "text!",
    key_name: "text!",
    sealed_key: "text!",
    when_created: "text!",
  })
    .addUniqueConstraint("certificates_per_site", ["deployment_site_id", "fingerprint"])
    .execute();
}
