// The tables of mail, chat, notifications and alerts, as Kysely sees them; the rest is in schema.ts.

import type { Generated } from "kysely";

type Id = Generated<number>;

export type NoticeTables = {
  /** Messages on their way to a mail server or a chat hook, and those that arrived, until their retention. */
  outbox: {
    id: Id;
    /** Fixed when the message is written: it is in `Message-ID` and `Idempotency-Key` of each attempt. */
    uid: string;
    /** What must not be sent twice has a key; null: no such rule. */
    once_key: string | null;
    customer_id: number;
    channel: "mail" | "chat";
    /** What it is about: a notification type, `recovery`, `bot_report`. */
    kind: string;
    /** An address, or `chat:<id>` of the channel. */
    recipient: string;
    /** The message as JSON, sealed: it may hold a link that is as good as a token. Empty when the message is gone out. */
    sealed: string;
    state: "waiting" | "sent" | "failed";
    attempts: number;
    /** Not before; of what is over, when its last attempt was due. Limits count by it. */
    due_at: string;
    /** Later it helps nobody. */
    expires_at: string;
    /** Whose turn it is, and until when: another sender keeps off. */
    lease_owner: string | null;
    lease_until: string | null;
    when_created: string;
    when_ended: string | null;
    error: string | null;
  };
  /** Asked for and not looked at yet: whether the user exists is found out after the answer. */
  recovery_requests: { id: Id; username: string; email: string; when_created: string };
  /** SHA-256 in hex of the token in the link. */
  recoveries: { digest: string; user_id: number; expires_at: string };
  /** `report`: reports that nobody subscribes to, from which an address can be taken off. */
  subscriptions: {
    id: Id;
    customer_id: number;
    channel: "email" | "monitor" | "report";
    type: string;
    /** As it was given. */
    email: string;
    /** In lower case: one address, one subscription. */
    email_key: string;
    state: "active" | "suspended" | "ended";
    suspended_until: string | null;
    /** The token of its unsubscribe link: SHA-256 in hex, and sealed to be written into mails. */
    link_digest: string;
    link_sealed: string;
    when_created: string;
    when_updated: string;
  };
  chat_channels: {
    id: Id;
    customer_id: number;
    monitor_uid: string;
    chat_channel_name: string;
    /** Whoever knows a hook URL may post. */
    hook_sealed: string;
    when_created: string;
    when_updated: string;
  };
  email_channels: {
    id: Id;
    customer_id: number;
    monitor_uid: string;
    when_created: string;
    when_updated: string;
  };
  /** Runs of the reports, each period once. */
  notice_runs: {
    kind: "daily" | "weekly";
    /** Date in the reports' time zone. */
    period: string;
    /** The last day (UTC) that its reports cover. */
    covers_until: string;
    /** Customers up to this id are done. */
    after_customer_id: number;
    when_begun: string;
    when_done: string | null;
  };
  /** What a customer was told and is not to be told again. */
  told_facts: { customer_id: number; fact: string; when_told: string };
  /** The release that an instance of a deployment was last seen with: there may be two of them, and not on one release. */
  instance_versions: {
    deployment_site_id: number;
    instance_id: string;
    version: string;
    when_seen: string;
  };
  /** Backends in trouble as one agent sees them. A row goes when there is no trouble any more. */
  backend_troubles: {
    deployment_site_id: number;
    instance_id: string;
    domain_id: number;
    kind: "slow" | "unreachable";
    /** Since when no sample was good. */
    since: string;
    last_bad: string;
    /** Since when its samples are good; null: the last one was bad. */
    good_since: string | null;
    /** Of the last bad sample: requests, and those of them that were slow or failed. */
    requests: number;
    bad_requests: number;
  };
  /** Alerts that fire; a row goes when it is resolved. `edge` is empty for what is told by domain only. */
  alerts: {
    id: Id;
    customer_id: number;
    type: string;
    domain_id: number;
    edge: string;
    when_fired: string;
  };
  /** What visitors asked of a main domain, by day of the report (UTC). */
  traffic_days: {
    domain_id: number;
    day: string;
    requests: number;
    hits: number;
    blocked: number;
    bytes: number;
    origin_requests: number;
    origin_errors: number;
  };
  /** Days on which a domain's image variants were held back; `when_told` null: not told yet. */
  image_blocks: { domain_id: number; day: string; blocked: number; when_told: string | null };
};
