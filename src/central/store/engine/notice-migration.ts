// The step of the store that brings mail, chat, notifications and alerts.

import { index, table, type Db } from "./migration-tables.ts";

export async function notices(db: Db): Promise<void> {
  await outbox(db);
  await recovery(db);
  await subscriptions(db);
  await runs(db);
  await alerts(db);
}

async function outbox(db: Db): Promise<void> {
  await table(db, "outbox", {
    id: "id",
    uid: "text!",
    once_key: "text",
    customer_id: "→ customers",
    channel: "text!",
    kind: "text!",
    recipient: "text!",
    sealed: "text!",
    state: "text!",
    attempts: "integer!",
    due_at: "text!",
    expires_at: "text!",
    lease_owner: "text",
    lease_until: "text",
    when_created: "text!",
    when_ended: "text",
    error: "text",
  })
    .addUniqueConstraint("outbox_uid", ["uid"])
    .addUniqueConstraint("outbox_once_key", ["once_key"])
    .execute();
  await index(db, "outbox", ["channel", "state", "due_at"]);
  await index(db, "outbox", ["recipient", "when_created"]);
  await index(db, "outbox", ["customer_id", "when_created"]);
}

async function recovery(db: Db): Promise<void> {
  await table(db, "recovery_requests", {
    id: "id",
    username: "text!",
    email: "text!",
    when_created: "text!",
  }).execute();
  await table(db, "recoveries", { digest: "text!", user_id: "→ users", expires_at: "text!" })
    .addPrimaryKeyConstraint("recoveries_pk", ["digest"])
    .execute();
  await index(db, "recoveries", ["user_id"]);
}

async function subscriptions(db: Db): Promise<void> {
  await table(db, "subscriptions", {
    id: "id",
    customer_id: "→ customers",
    channel: "text!",
    type: "text!",
    email: "text!",
    email_key: "text!",
    state: "text!",
    suspended_until: "text",
    link_digest: "text!",
    link_sealed: "text!",
    when_created: "text!",
    when_updated: "text!",
  })
    .addUniqueConstraint("subscriptions_once", ["customer_id", "channel", "type", "email_key"])
    .addUniqueConstraint("subscriptions_link", ["link_digest"])
    .execute();
  await table(db, "chat_channels", {
    id: "id",
    customer_id: "→ customers",
    monitor_uid: "text!",
    chat_channel_name: "text!",
    hook_sealed: "text!",
    when_created: "text!",
    when_updated: "text!",
  })
    .addUniqueConstraint("chat_channels_uid", ["customer_id", "monitor_uid"])
    .execute();
  await table(db, "email_channels", {
    id: "id",
    customer_id: "→ customers",
    monitor_uid: "text!",
    when_created: "text!",
    when_updated: "text!",
  })
    .addUniqueConstraint("email_channels_uid", ["customer_id", "monitor_uid"])
    .execute();
}

async function runs(db: Db): Promise<void> {
  await table(db, "notice_runs", {
    kind: "text!",
    period: "text!",
    covers_until: "text!",
    after_customer_id: "integer!",
    when_begun: "text!",
    when_done: "text",
  })
    .addPrimaryKeyConstraint("notice_runs_pk", ["kind", "period"])
    .execute();
  await table(db, "told_facts", {
    customer_id: "→ customers",
    fact: "text!",
    when_told: "text!",
  })
    .addPrimaryKeyConstraint("told_facts_pk", ["customer_id", "fact"])
    .execute();
  await table(db, "site_versions", {
    deployment_site_id: "→ deployment_sites",
    version: "text!",
    when_seen: "text!",
  })
    .addPrimaryKeyConstraint("site_versions_pk", ["deployment_site_id"])
    .execute();
  await table(db, "traffic_days", {
    domain_id: "→ domains",
    day: "text!",
    requests: "bigint!",
    hits: "bigint!",
    blocked: "bigint!",
    bytes: "bigint!",
    origin_requests: "bigint!",
    origin_errors: "bigint!",
  })
    .addPrimaryKeyConstraint("traffic_days_pk", ["domain_id", "day"])
    .execute();
  await index(db, "traffic_days", ["day"]);
  await table(db, "image_blocks", {
    domain_id: "→ domains",
    day: "text!",
    blocked: "bigint!",
    when_told: "text",
  })
    .addPrimaryKeyConstraint("image_blocks_pk", ["domain_id", "day"])
    .execute();
}

async function alerts(db: Db): Promise<void> {
  const place = ["deployment_site_id", "instance_id", "domain_id", "kind"] as const;
  await table(db, "backend_troubles", {
    deployment_site_id: "→ deployment_sites",
    instance_id: "text!",
    domain_id: "→ domains",
    kind: "text!",
    since: "text!",
    last_bad: "text!",
    good_since: "text",
    requests: "bigint!",
    bad_requests: "bigint!",
  })
    .addPrimaryKeyConstraint("backend_troubles_pk", [...place])
    .execute();
  await table(db, "alerts", {
    id: "id",
    customer_id: "→ customers",
    type: "text!",
    domain_id: "→ domains",
    edge: "text!",
    when_fired: "text!",
  })
    .addUniqueConstraint("alerts_once", ["type", "domain_id", "edge"])
    .execute();
}
