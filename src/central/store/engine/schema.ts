// The tables of central's store, as Kysely sees them. Columns are snake_case; times are ISO 8601 texts in UTC; JSON columns are texts.
//
// `Generated` columns are filled by the database. Secrets at rest are sealed by `base/seal.ts`.

import type { Generated, Selectable } from "kysely";
import type { Sha256 } from "../../../core/ids.ts";
import type { AcmeTables } from "./acme-schema.ts";
import type { AlertTables } from "./alert-schema.ts";
import type { ImageTables } from "./image-schema.ts";
import type { LossTables } from "./loss-schema.ts";
import type { ObjectKeyColumns, ObjectPlaceColumns, ObjectTables } from "./object-schema.ts";
import type { BotClassColumns, BotClassTables } from "./bot-class-schema.ts";
import type { BotSourceTables } from "./bot-source-schema.ts";
import type { CentralTables } from "./central-schema.ts";
import type { PeopleTables } from "./people-schema.ts";
import type { RolloutTables } from "./rollout-schema.ts";

type Id = Generated<number>;

/** A row as it is read. */
export type TableRow<Name extends keyof StoreTables> = Readonly<Selectable<StoreTables[Name]>>;

/** The tables that files of their own describe. */
type OtherTables = PeopleTables &
  RolloutTables &
  AlertTables &
  BotSourceTables &
  BotClassTables &
  CentralTables &
  ImageTables &
  LossTables &
  ObjectTables &
  AcmeTables;

export type StoreTables = OtherTables & {
  /** One row: epoch of this store. */
  store: { id: number; epoch: string; when_created: string } & ObjectPlaceColumns;
  deployment_sites: {
    id: Id;
    customer_id: number;
    created_by_user_id: number;
    name16: string;
    /** secret16, sealed. */
    secret_sealed: string;
    when_created: string;
    /** Deleted sites stay as a name so that their agents learn `site_deleted`. */
    when_deleted: string | null;
    journal_head: number;
    journal_chain: Sha256;
    /** How often it was ordered to close the channels of the site. */
    shut_count: Generated<number>;
  };
  /** `position`: tags are shown in the order in which they were given. */
  deployment_site_tags: { deployment_site_id: number; tag: string; position: number };
  domains: {
    id: Id;
    customer_id: number;
    created_by_user_id: number;
    name: string;
    /** Standing rule: JSON list of tags, all of which a site must have; null: no rule. */
    link_tags: string | null;
    active_viewset_id: number | null;
    when_created: string;
  };
  sub_domains: {
    id: Id;
    domain_id: number;
    customer_id: number;
    name: string;
    share_views_and_views_dir_with_main_domain: number;
  };
  /** `by_id` 1: linked by id, stays until unlinked; 0: by the domain's tags. */
  domain_links: { domain_id: number; deployment_site_id: number; by_id: number };
  viewsets: {
    id: Id;
    domain_id: number;
    name: string;
    comment: string;
    /** A manifest blob whose `files` are the views of this version (its devlove is not looked at); null: no views (the host's own directory). */
    files_blob: Sha256 | null;
    /** The manifest blob that its last activation named, composed of `files_blob` and the devlove of then; null: never activated. */
    manifest_blob: Sha256 | null;
    when_created: string;
    when_obsoleted: string | null;
  };
  /**
   * The place of a domain's latest activation in the journal of each deployment; its receipts are the proof.
   */
  viewset_deployments: {
    domain_id: number;
    deployment_site_id: number;
    viewset_id: number;
    seq: number;
  };
  /**
   * Activations on all instances of a domain's sites or on none. `before_viewset_id`: the version that was active when it was decided; where it was this one already, the one before it. A domain has at most one
   * that is `preparing`, and one that is `activated` or `failing`. `failing`: its trial failed somewhere, and the return is not written yet. `replaced`: another
   * version was activated since.
   */
  fleet_activations: {
    id: Id;
    domain_id: number;
    viewset_id: number;
    manifest_blob: Sha256;
    before_viewset_id: number | null;
    state: "preparing" | "activated" | "failing" | "replaced" | "aborted" | "returned";
    reason: string | null;
    when_started: string;
    deadline: string;
    when_ended: string | null;
  };
  /** The place in a site's journal where its instances were asked last. */
  fleet_activation_sites: { activation_id: number; deployment_site_id: number; seq: number };
  fleet_activation_members: {
    activation_id: number;
    deployment_site_id: number;
    instance_id: string;
    when_joined: string;
  };
  /** When versions were made the active ones, one after the other: by a customer, or by a trial that failed. */
  viewset_activations: { id: Id; domain_id: number; viewset_id: number; at: string };
  devlove_files: { id: Id; viewset_id: number; schema_id: string; content: string };
  /**
   * Content-addressed files; a row says that the file is whole. `when_created`: when it was stored, or, to the hour, when it was last asked
   * for by somebody who may be about to name it. `when_dead`: since when it is to go from the bucket; null: it stays.
   */
  blobs: {
    sha256: Sha256;
    size: number;
    when_created: string;
    when_dead: string | null;
  } & ObjectKeyColumns;
  imports: {
    id: string;
    domain_id: number;
    deployment_site_id: number;
    viewset_name: string;
    state: "started" | "done" | "failed";
    error: string | null;
    /** Ids of the instances whose settings name no directory of the domain, as a JSON list; null: none has said so. */
    without_site: string | null;
    viewset_id: number | null;
    files: number | null;
    bytes: number | null;
    when_started: string;
    when_ended: string | null;
  };
  /** A set belongs to a main domain or a sub-domain by name. Version counts changes; digest by core/set-digest. */
  bot_sets: {
    id: Id;
    domain_id: number;
    host: string;
    kind: "bad" | "vip";
    version: number;
    count: number;
    digest: Sha256;
    /** The version that the journals tell of. Where it is behind `version`, `bot_changes` has the rest. */
    journaled_version: Generated<number>;
    /** Elements that changed since then. More than an entry may hold: they are not kept, the entry names the set by its digest. */
    pending: Generated<number>;
    /** The largest count from which the set came down by what was asked for. */
    meant_from: Generated<number>;
  };
  /**
   * The place of a set's last entry in the journal of each deployment, and the version that it leads to; its
   * receipts are the proof.
   */
  bot_set_deployments: {
    bot_set_id: number;
    deployment_site_id: number;
    version: number;
    seq: number;
  };
  /** The changes, in order, that the journals are still to be told. */
  bot_changes: { id: Id; bot_set_id: number; is_added: number; bot: string; range: string };
  /** Whole sets that were made blobs, by the set's digest. */
  bot_set_contents: { digest: Sha256; blob: Sha256; when_created: string };
  /** Count and digest as of a set, of this bot's elements. */
  bots: {
    id: Id;
    bot_set_id: number;
    name: string;
    count: Generated<number>;
    digest: Generated<Sha256>;
  };
  /** Their elements are to be swept, if not before `held_until`: gone, or not yet there. Filled by a trigger on `bots`. */
  dead_bots: { bot_id: number; held_until: string | null };
  /** Each is one CIDR range, so two of them are nested or disjoint. Those without a row in `bots` are not in force. */
  bot_elements: {
    bot_id: number;
    /** The set of the bot: questions about addresses ask sets. */
    bot_set_id: number;
    range: string;
    family: number;
    /** 16 bytes big-endian. */ first: Uint8Array;
    last: Uint8Array;
  };
  /** General policy of a customer; null: not set (blocked). */
  general_policies: {
    customer_id: number;
    unknown_bots_can_access: number | null;
  } & BotClassColumns;
  domain_policies: {
    customer_id: number;
    domain: string;
    unknown_bots_can_access: number;
  } & BotClassColumns;
  policy_pairs: { customer_id: number; list: "allow" | "deny"; domain: string; bot: string };
  clears: {
    id: string;
    domain_id: number;
    host: string | null;
    patterns: string;
    when_created: string;
    /** What was named beside patterns, as it was given, as JSON. */
    items: string | null;
    /** Counts the clears of the domain from 1. */
    no: number;
    /** Whether its entries of the journal have an extension. */
    has_extension: number;
  };
  /** One row per deployment a clear concerns, with the place of its entry. */
  clear_deployments: { clear_id: string; deployment_site_id: number; seq: number };
  /** `extension`: what goes beside the body to agents that take it. */
  journal_bodies: { digest: Sha256; body: string; extension: string | null };
  journal: {
    deployment_site_id: number;
    seq: number;
    kind: string;
    at: string;
    body_digest: Sha256;
    chain: Sha256;
  };
  receipts: {
    deployment_site_id: number;
    instance_id: string;
    seq: number;
    phase: "applied" | "gone" | "failed" | "refused";
    detail: string;
    took_ms: number;
    when_received: string;
  };
  instances: {
    deployment_site_id: number;
    instance_id: string;
    agent_version: string;
    edge: string | null;
    /**
     * With `epoch` and `chain`, the position that the instance told last, as it told it; one of another
     * history is kept as well.
     */
    applied_seq: number;
    /** Null: the agent has no state of any store. */
    epoch: string | null;
    /** Null, as `position_at`: none was told yet. */
    chain: string | null;
    /** JSON; null: nothing was under way, or it is not told. */
    oldest_unfinished: string | null;
    position_at: string | null;
    last_seen: string;
    last_report: string | null;
    /** When the agent last delivered logs or confirmed an empty spool. */
    logs_confirmed_at: string | null;
  };
  /** Requests of unreviewed bots of a main domain, by day (UTC, `YYYY-MM-DD`). */
  unreviewed_bots: {
    domain_id: number;
    day: string;
    name: string;
    description: string | null;
    requests: number;
  };
  /** The last batch of counts that was added, for each start of an agent. */
  counted_batches: {
    deployment_site_id: number;
    instance_id: string;
    boot_id: string;
    seq: number;
    when_stored: string;
  };
  /** One row per site that has or had a key. */
  vaults: {
    deployment_site_id: number;
    /** How many keys were made for it: the number in the name of the last one. */
    keys_made: number;
    /** The last `key.changed` and `certificate.changed` of its journal; null: none yet. */
    keys_seq: number;
    certificates_seq: number | null;
    /** SHA-256 of its certificates as JSON where they are too many to stand in the journal. */
    certificates_blob: Sha256 | null;
  };
  symmetric_keys: {
    id: Id;
    deployment_site_id: number;
    name: string;
    /** 64 hex characters, sealed at rest. */
    key_sealed: string;
    version: number;
    /** Sealed for the way to the agent by `base/vault-seal.ts`. */
    sealed: string;
    when_created: string;
  };
  certificates: {
    id: Id;
    deployment_site_id: number;
    /** JSON list, sorted. */
    names: string;
    not_before: string;
    not_after: string;
    fingerprint: Sha256;
    /** PEM, the leaf first. */
    chain: string;
    /** PKCS#8 PEM, sealed at rest. */
    private_key_sealed: string;
    /** The symmetric key of `sealed_key`: the newest of its site. */
    key_name: string;
    /** Sealed for the way to the agent. */
    sealed_key: string;
    when_created: string;
    /** The order that it came of; null: it was uploaded. */
    acme_order_id: number | null;
  };
  /** Secrets of before, sealed, that are accepted until then; the newest has the highest id. */
  old_secrets: { id: Id; deployment_site_id: number; secret_sealed: string; until: string };
  /** Codes with which hosts join a site; `digest`: SHA-256 in hex of the code. */
  enrolments: {
    id: Id;
    deployment_site_id: number;
    digest: Sha256;
    uses: number;
    used: number;
    created_by: string;
    when_created: string;
    when_expires: string;
    when_revoked: string | null;
  };
  /** Exchanges of codes. Who repeats a nonce gets the same answer. */
  enrolment_uses: { enrolment_id: number; nonce_digest: Sha256; address: string; at: string };
  /** Bearer tokens of agents: SHA-256 in hex. */
  agent_tokens: { digest: string; deployment_site_id: number; expires_at: string };
  /** First answers of POSTs by `Idempotency-Key`; the answer is sealed, since it may hold a token. */
  idempotency: {
    scope: string;
    key: string;
    request_digest: string;
    status: number;
    answer_sealed: string;
    when_created: string;
  };
  /** Accelerator packages. A row says that the file is whole. */
  packages: {
    id: Id;
    /** PEP 440, in its normal form. */
    version: string;
    /** Equal for equal versions. */
    version_key: string;
    file: string;
    size: number;
    sha256: Sha256;
    /** Name of the file in the directory of packages; of one that never lay there, its key. */
    stored_as: string;
    uploaded_by_user_id: number;
    when_created: string;
  } & ObjectKeyColumns;
  /** Who changed what. Without references: it outlives whom it tells of. */
  audit: {
    id: Id;
    at: string;
    /** `central`: what it did by itself. */
    via: "api" | "operator" | "agent" | "central";
    who: string;
    user_id: number | null;
    customer_id: number | null;
    action: string;
    /** The operation of the customer API; null: none, or a line from before it was noted. */
    operation: Generated<string | null>;
    /** JSON. */
    ids: string;
    change: string;
    address: string | null;
    request_id: string | null;
  };
  /** Messages on their way to a mail server or a chat hook, and those that arrived, until their retention. */
  outbox: {
    id: Id;
    /** Fixed when the message is written: it is in `Message-ID` and `Idempotency-Key` of each attempt. */
    uid: string;
    /** A key of what must not be sent twice; null if there is no such rule. */
    once_key: string | null;
    customer_id: number;
    channel: "mail" | "chat";
    /** The kind of message: a notification type, `recovery`, `bot_report`. */
    kind: string;
    /** An address, or `chat:<id>` of the channel. */
    recipient: string;
    /** The message as JSON, sealed: it may hold a link that is as good as a token. Empty when the message is gone out. */
    sealed: string;
    state: "waiting" | "sent" | "failed";
    attempts: number;
    /** The earliest time to send it; of what is over, when its last attempt was due. Limits count by it. */
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
    /** The address as it was given. */
    email: string;
    /** The address in lower case: one address, one subscription. */
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
  /** The facts that a customer was told and is not to be told again. */
  told_facts: { customer_id: number; fact: string; when_told: string };
  /** The release that an instance of a deployment was last seen with: there may be two of them, and not on one release. */
  instance_versions: {
    deployment_site_id: number;
    instance_id: string;
    version: string;
    when_seen: string;
  };
  /** The visitors' requests to a main domain, by day of the report (UTC). */
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
};
