// How the store came to be, step by step. A step that has been released is never changed; Kysely keeps the list of those done.

import { sql } from "kysely";
import type { Migration } from "kysely/migration";
import { botDelivery } from "./delivery-migration.ts";
import { index, table, type Db } from "./migration-tables.ts";
import { notices } from "./notice-migration.ts";
import { packagesAndAudit } from "../operator-tables.ts";

export const migrations: Readonly<Record<string, Migration>> = {
  "0001-people": { up: people },
  "0002-sites-and-domains": { up: sitesAndDomains },
  "0003-viewsets": { up: viewsets },
  "0004-bots": { up: bots },
  "0005-journal": { up: journal },
  "0006-bot-elements-by-set": { up: elementsBySet },
  "0007-bot-delivery": { up: botDelivery },
  "0008-unreviewed-bots": { up: unreviewedBots },
  "0009-vault": { up: vault },
  "0010-packages-and-audit": { up: packagesAndAudit },
  "0011-restores": { up: restores },
  "0012-notices": { up: notices },
  "0013-locked-users": { up: lockedUsers },
  "0014-held-bots": { up: heldBots },
  "0015-turns": { up: turns },
  "0016-positions": { up: positions },
  "0017-set-deployments": { up: setDeployments },
};

async function people(db: Db): Promise<void> {
  await table(db, "store", { id: "integer!", epoch: "text!", when_created: "text!" })
    .addPrimaryKeyConstraint("store_pk", ["id"])
    .execute();
  await table(db, "customers", {
    id: "id",
    name: "text!",
    created_by_user_id: "integer",
    when_created: "text!",
  }).execute();
  await table(db, "users", {
    id: "id",
    customer_id: "→ customers",
    username: "text!",
    email: "text!",
    first_name: "text!",
    last_name: "text!",
    password_hash: "text",
    may_publish: "integer!",
    may_read_logs: "integer!",
    date_joined: "text!",
  })
    .addUniqueConstraint("users_username", ["username"])
    .execute();
  await table(db, "tokens", {
    id: "id",
    user_id: "→ users",
    digest: "text!",
    when_created: "text!",
    when_revoked: "text",
  })
    .addUniqueConstraint("tokens_digest", ["digest"])
    .execute();
  await table(db, "idempotency", {
    scope: "text!",
    key: "text!",
    request_digest: "text!",
    status: "integer!",
    answer_sealed: "text!",
    when_created: "text!",
  })
    .addPrimaryKeyConstraint("idempotency_pk", ["scope", "key"])
    .execute();
}

async function sitesAndDomains(db: Db): Promise<void> {
  await table(db, "deployment_sites", {
    id: "id",
    customer_id: "integer!", // No reference: a deleted site outlives its customer as a name.
    created_by_user_id: "integer!",
    name16: "text!",
    secret_sealed: "text!",
    secret_old_sealed: "text",
    secret_old_until: "text",
    when_created: "text!",
    when_deleted: "text",
    journal_head: "bigint!",
    journal_chain: "text!",
  })
    .addUniqueConstraint("deployment_sites_name16", ["name16"])
    .execute();
  await index(db, "deployment_sites", ["customer_id"]);
  await table(db, "deployment_site_tags", {
    deployment_site_id: "→ deployment_sites",
    tag: "text!",
    position: "integer!",
  })
    .addPrimaryKeyConstraint("deployment_site_tags_pk", ["deployment_site_id", "tag"])
    .execute();
  await table(db, "domains", {
    id: "id",
    customer_id: "→ customers",
    created_by_user_id: "integer!",
    name: "text!",
    link_tags: "text",
    active_viewset_id: "integer",
    when_created: "text!",
  })
    .addUniqueConstraint("domains_name_per_customer", ["customer_id", "name"])
    .execute();
  await table(db, "sub_domains", {
    id: "id",
    domain_id: "→ domains",
    customer_id: "integer!",
    name: "text!",
    share_views_and_views_dir_with_main_domain: "integer!",
  })
    .addUniqueConstraint("sub_domains_name_per_customer", ["customer_id", "name"])
    .execute();
  await table(db, "domain_links", {
    domain_id: "→ domains",
    deployment_site_id: "→ deployment_sites",
    by_id: "integer!",
  })
    .addPrimaryKeyConstraint("domain_links_pk", ["domain_id", "deployment_site_id"])
    .execute();
}

async function viewsets(db: Db): Promise<void> {
  await table(db, "viewsets", {
    id: "id",
    domain_id: "→ domains",
    name: "text!",
    comment: "text!",
    files_blob: "text",
    manifest_blob: "text",
    when_created: "text!",
    when_obsoleted: "text",
  })
    .addUniqueConstraint("viewsets_name_per_domain", ["domain_id", "name"])
    .execute();
  await table(db, "viewset_deployments", {
    domain_id: "→ domains",
    deployment_site_id: "integer!",
    viewset_id: "integer!",
    seq: "bigint!",
  })
    .addPrimaryKeyConstraint("viewset_deployments_pk", ["domain_id", "deployment_site_id"])
    .execute();
  await table(db, "devlove_files", {
    id: "id",
    viewset_id: "→ viewsets",
    schema_id: "text!",
    content: "text!",
  })
    .addUniqueConstraint("devlove_files_schema_per_viewset", ["viewset_id", "schema_id"])
    .execute();
  await table(db, "blobs", { sha256: "text!", size: "bigint!", when_created: "text!" })
    .addPrimaryKeyConstraint("blobs_pk", ["sha256"])
    .execute();
  await table(db, "imports", {
    id: "text!",
    domain_id: "→ domains",
    deployment_site_id: "integer!",
    viewset_name: "text!",
    state: "text!",
    error: "text",
    viewset_id: "integer",
    files: "bigint",
    bytes: "bigint",
    when_started: "text!",
    when_ended: "text",
  })
    .addPrimaryKeyConstraint("imports_pk", ["id"])
    .execute();
}

async function bots(db: Db): Promise<void> {
  await table(db, "bot_sets", {
    id: "id",
    domain_id: "→ domains",
    host: "text!",
    kind: "text!",
    version: "integer!",
    count: "integer!",
    digest: "text!",
  })
    .addUniqueConstraint("bot_sets_per_host", ["domain_id", "host", "kind"])
    .execute();
  await table(db, "bots", { id: "id", bot_set_id: "→ bot_sets", name: "text!" })
    .addUniqueConstraint("bots_name_per_set", ["bot_set_id", "name"])
    .execute();
  await table(db, "bot_elements", {
    bot_id: "→ bots",
    range: "text!",
    family: "integer!",
    first: "blob!",
    last: "blob!",
  })
    .addPrimaryKeyConstraint("bot_elements_pk", ["bot_id", "range"])
    .execute();
  await index(db, "bot_elements", ["family", "first"]);
  await table(db, "general_policies", {
    customer_id: "→ customers",
    unknown_bots_can_access: "integer",
  })
    .addPrimaryKeyConstraint("general_policies_pk", ["customer_id"])
    .execute();
  await table(db, "domain_policies", {
    customer_id: "→ customers",
    domain: "text!",
    unknown_bots_can_access: "integer!",
  })
    .addPrimaryKeyConstraint("domain_policies_pk", ["customer_id", "domain"])
    .execute();
  await table(db, "policy_pairs", {
    customer_id: "→ customers",
    list: "text!",
    domain: "text!",
    bot: "text!",
  })
    .addPrimaryKeyConstraint("policy_pairs_pk", ["customer_id", "list", "domain", "bot"])
    .execute();
}

async function journal(db: Db): Promise<void> {
  await table(db, "clears", {
    id: "text!",
    domain_id: "→ domains",
    host: "text",
    patterns: "text!",
    when_created: "text!",
  })
    .addPrimaryKeyConstraint("clears_pk", ["id"])
    .execute();
  await table(db, "clear_deployments", {
    clear_id: "→ clears",
    deployment_site_id: "integer!",
    seq: "bigint!",
  })
    .addPrimaryKeyConstraint("clear_deployments_pk", ["clear_id", "deployment_site_id"])
    .execute();
  await table(db, "journal_bodies", { digest: "text!", body: "text!" })
    .addPrimaryKeyConstraint("journal_bodies_pk", ["digest"])
    .execute();
  await table(db, "journal", {
    deployment_site_id: "integer!",
    seq: "bigint!",
    kind: "text!",
    at: "text!",
    body_digest: "text!",
    chain: "text!",
  })
    .addPrimaryKeyConstraint("journal_pk", ["deployment_site_id", "seq"])
    .execute();
  await table(db, "receipts", {
    deployment_site_id: "integer!",
    instance_id: "text!",
    seq: "bigint!",
    phase: "text!",
    detail: "text!",
    took_ms: "integer!",
    when_received: "text!",
  })
    .addPrimaryKeyConstraint("receipts_pk", ["deployment_site_id", "instance_id", "seq", "phase"])
    .execute();
  await table(db, "instances", {
    deployment_site_id: "integer!",
    instance_id: "text!",
    agent_version: "text!",
    edge: "text",
    applied_seq: "bigint!",
    last_seen: "text!",
    last_report: "text",
    logs_confirmed_at: "text",
  })
    .addPrimaryKeyConstraint("instances_pk", ["deployment_site_id", "instance_id"])
    .execute();
  await table(db, "agent_tokens", {
    digest: "text!",
    deployment_site_id: "integer!",
    expires_at: "text!",
  })
    .addPrimaryKeyConstraint("agent_tokens_pk", ["digest"])
    .execute();
}

/** Elements know their set, so that an address is looked up by a few index seeks however many elements there are. */
export async function elementsBySet(db: Db): Promise<void> {
  await db.schema
    .alterTable("bot_elements")
    .addColumn("bot_set_id", "integer", (column) => column.notNull().defaultTo(0))
    .execute();
  await sql`UPDATE bot_elements SET bot_set_id = (SELECT bot_set_id FROM bots WHERE bots.id = bot_elements.bot_id)`.execute(
    db,
  );
  await db.schema.dropIndex("bot_elements_family_first").execute();
  await index(db, "bot_elements", ["bot_set_id", "family", "first"]);
}

async function unreviewedBots(db: Db): Promise<void> {
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

/** Sites that are there get their first key at the start (`first-keys.ts`): it takes the store's key. */
async function vault(db: Db): Promise<void> {
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

async function restores(db: Db): Promise<void> {
  await table(db, "restores", {
    id: "id",
    when_backed_up: "text!",
    when_restored: "text!",
    epoch_before: "text!",
    clear_now: "integer!",
  }).execute();
}

/** Operators may lock users. */
async function lockedUsers(db: Db): Promise<void> {
  await db.schema.alterTable("users").addColumn("when_locked", "text").execute();
}

/** Marks of many elements are written beside what is in force; the index finds the bots that only an import makes. */
async function heldBots(db: Db): Promise<void> {
  await db.schema.alterTable("dead_bots").addColumn("held_until", "text").execute();
  await index(db, "bots", ["bot_set_id", "count"]);
}

/** Messages are counted by customer and recipient, and releases are known by instance. */
async function turns(db: Db): Promise<void> {
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

/** Each instance's position is kept as it told it, with the store and the digest that it belongs to. */
async function positions(db: Db): Promise<void> {
  // What stands in applied_seq was told by hello or inferred from a snapshot; without digest and time it is not shown. Agents say hello when central is back.
  for (const column of ["epoch", "chain", "oldest_unfinished", "position_at"])
    await db.schema.alterTable("instances").addColumn(column, "text").execute();
}

/** Where in each journal a bot set was told last: the receipts of that entry prove that marks are in force. */
async function setDeployments(db: Db): Promise<void> {
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
