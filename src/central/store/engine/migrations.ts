// How the store came to be, step by step. A step that has been released is never changed; Kysely keeps the list of those done. Steps see the schema of their own day:
// what follows must not change with schema.ts.
//
// Each says what a release must know to work on a store that has it (store-steps.ts): a release before goes on beside this one, and may be started again. What is added is an `expansion`.
// What nobody uses any more is taken away a release later, by a `contraction`.
//
// Each is SQL that SQLite and PostgreSQL (15 and newer) both take, in three words that differ or repeat: statements.ts has what they stand for.

import { acme, acmeTries } from "./acme-schema.ts";
import { alertHistory } from "./alert-history-migration.ts";
import { botClassPolicies } from "./bot-class-schema.ts";
import { botSources } from "./bot-source-schema.ts";
import { centrals, centralSettings } from "./central-schema.ts";
import { botDelivery } from "./delivery-migration.ts";
import { imageDays } from "./image-schema.ts";
import { commitMarks } from "./loss-schema.ts";
import { objectKeys } from "./object-schema.ts";
import { importsWithout } from "./import-schema.ts";
import { rollouts } from "./rollout-schema.ts";
import { runStatements, type Db } from "./statements.ts";
import { expansion, storeSteps, type StoreStep, type StoreSteps } from "./store-steps.ts";

const people = `
  CREATE TABLE store (
    id integer NOT NULL, epoch text NOT NULL, when_created text NOT NULL,
    CONSTRAINT store_pk PRIMARY KEY (id)
  );
  CREATE TABLE customers (id $id, name text NOT NULL, created_by_user_id integer, when_created text NOT NULL);
  CREATE TABLE users (
    id $id, customer_id integer → customers, username text NOT NULL, email text NOT NULL,
    first_name text NOT NULL, last_name text NOT NULL, password_hash text, may_publish integer NOT NULL,
    may_read_logs integer NOT NULL, date_joined text NOT NULL,
    CONSTRAINT users_username UNIQUE (username)
  );
  CREATE TABLE tokens (
    id $id, user_id integer → users, digest text NOT NULL, when_created text NOT NULL, when_revoked text,
    CONSTRAINT tokens_digest UNIQUE (digest)
  );
  CREATE TABLE idempotency (
    scope text NOT NULL, key text NOT NULL, request_digest text NOT NULL, status integer NOT NULL,
    answer_sealed text NOT NULL, when_created text NOT NULL,
    CONSTRAINT idempotency_pk PRIMARY KEY (scope, key)
  );
`;

/** A site refers to no customer: a deleted site outlives its customer as a name. */
const sitesAndDomains = `
  CREATE TABLE deployment_sites (
    id $id, customer_id integer NOT NULL, created_by_user_id integer NOT NULL, name16 text NOT NULL,
    secret_sealed text NOT NULL, secret_old_sealed text, secret_old_until text, when_created text NOT NULL,
    when_deleted text, journal_head bigint NOT NULL, journal_chain text NOT NULL,
    CONSTRAINT deployment_sites_name16 UNIQUE (name16)
  );
  CREATE INDEX deployment_sites_customer_id ON deployment_sites (customer_id);
  CREATE TABLE deployment_site_tags (
    deployment_site_id integer → deployment_sites, tag text NOT NULL, position integer NOT NULL,
    CONSTRAINT deployment_site_tags_pk PRIMARY KEY (deployment_site_id, tag)
  );
  CREATE TABLE domains (
    id $id, customer_id integer → customers, created_by_user_id integer NOT NULL, name text NOT NULL,
    link_tags text, active_viewset_id integer, when_created text NOT NULL,
    CONSTRAINT domains_name_per_customer UNIQUE (customer_id, name)
  );
  CREATE TABLE sub_domains (
    id $id, domain_id integer → domains, customer_id integer NOT NULL, name text NOT NULL,
    share_views_and_views_dir_with_main_domain integer NOT NULL,
    CONSTRAINT sub_domains_name_per_customer UNIQUE (customer_id, name)
  );
  CREATE TABLE domain_links (
    domain_id integer → domains, deployment_site_id integer → deployment_sites, by_id integer NOT NULL,
    CONSTRAINT domain_links_pk PRIMARY KEY (domain_id, deployment_site_id)
  );
`;

const viewsets = `
  CREATE TABLE viewsets (
    id $id, domain_id integer → domains, name text NOT NULL, comment text NOT NULL, files_blob text,
    manifest_blob text, when_created text NOT NULL, when_obsoleted text,
    CONSTRAINT viewsets_name_per_domain UNIQUE (domain_id, name)
  );
  CREATE TABLE viewset_deployments (
    domain_id integer → domains, deployment_site_id integer NOT NULL, viewset_id integer NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT viewset_deployments_pk PRIMARY KEY (domain_id, deployment_site_id)
  );
  CREATE TABLE devlove_files (
    id $id, viewset_id integer → viewsets, schema_id text NOT NULL, content text NOT NULL,
    CONSTRAINT devlove_files_schema_per_viewset UNIQUE (viewset_id, schema_id)
  );
  CREATE TABLE blobs (
    sha256 text NOT NULL, size bigint NOT NULL, when_created text NOT NULL,
    CONSTRAINT blobs_pk PRIMARY KEY (sha256)
  );
  CREATE TABLE imports (
    id text NOT NULL, domain_id integer → domains, deployment_site_id integer NOT NULL,
    viewset_name text NOT NULL, state text NOT NULL, error text, viewset_id integer, files bigint,
    bytes bigint, when_started text NOT NULL, when_ended text,
    CONSTRAINT imports_pk PRIMARY KEY (id)
  );
`;

const bots = `
  CREATE TABLE bot_sets (
    id $id, domain_id integer → domains, host text NOT NULL, kind text NOT NULL, version integer NOT NULL,
    count integer NOT NULL, digest text NOT NULL,
    CONSTRAINT bot_sets_per_host UNIQUE (domain_id, host, kind)
  );
  CREATE TABLE bots (
    id $id, bot_set_id integer → bot_sets, name text NOT NULL,
    CONSTRAINT bots_name_per_set UNIQUE (bot_set_id, name)
  );
  CREATE TABLE bot_elements (
    bot_id integer → bots, range text NOT NULL, family integer NOT NULL, first $blob NOT NULL,
    last $blob NOT NULL,
    CONSTRAINT bot_elements_pk PRIMARY KEY (bot_id, range)
  );
  CREATE INDEX bot_elements_family_first ON bot_elements (family, first);
  CREATE TABLE general_policies (
    customer_id integer → customers, unknown_bots_can_access integer,
    CONSTRAINT general_policies_pk PRIMARY KEY (customer_id)
  );
  CREATE TABLE domain_policies (
    customer_id integer → customers, domain text NOT NULL, unknown_bots_can_access integer NOT NULL,
    CONSTRAINT domain_policies_pk PRIMARY KEY (customer_id, domain)
  );
  CREATE TABLE policy_pairs (
    customer_id integer → customers, list text NOT NULL, domain text NOT NULL, bot text NOT NULL,
    CONSTRAINT policy_pairs_pk PRIMARY KEY (customer_id, list, domain, bot)
  );
`;

const journal = `
  CREATE TABLE clears (
    id text NOT NULL, domain_id integer → domains, host text, patterns text NOT NULL,
    when_created text NOT NULL,
    CONSTRAINT clears_pk PRIMARY KEY (id)
  );
  CREATE TABLE clear_deployments (
    clear_id text → clears, deployment_site_id integer NOT NULL, seq bigint NOT NULL,
    CONSTRAINT clear_deployments_pk PRIMARY KEY (clear_id, deployment_site_id)
  );
  CREATE TABLE journal_bodies (
    digest text NOT NULL, body text NOT NULL,
    CONSTRAINT journal_bodies_pk PRIMARY KEY (digest)
  );
  CREATE TABLE journal (
    deployment_site_id integer NOT NULL, seq bigint NOT NULL, kind text NOT NULL, at text NOT NULL,
    body_digest text NOT NULL, chain text NOT NULL,
    CONSTRAINT journal_pk PRIMARY KEY (deployment_site_id, seq)
  );
  CREATE TABLE receipts (
    deployment_site_id integer NOT NULL, instance_id text NOT NULL, seq bigint NOT NULL, phase text NOT NULL,
    detail text NOT NULL, took_ms integer NOT NULL, when_received text NOT NULL,
    CONSTRAINT receipts_pk PRIMARY KEY (deployment_site_id, instance_id, seq, phase)
  );
  CREATE TABLE instances (
    deployment_site_id integer NOT NULL, instance_id text NOT NULL, agent_version text NOT NULL, edge text,
    applied_seq bigint NOT NULL, last_seen text NOT NULL, last_report text, logs_confirmed_at text,
    CONSTRAINT instances_pk PRIMARY KEY (deployment_site_id, instance_id)
  );
  CREATE TABLE agent_tokens (
    digest text NOT NULL, deployment_site_id integer NOT NULL, expires_at text NOT NULL,
    CONSTRAINT agent_tokens_pk PRIMARY KEY (digest)
  );
`;

const unreviewedBots = `
  CREATE TABLE unreviewed_bots (
    domain_id integer → domains, day text NOT NULL, name text NOT NULL, description text,
    requests bigint NOT NULL,
    CONSTRAINT unreviewed_bots_pk PRIMARY KEY (domain_id, day, name)
  );
  CREATE INDEX unreviewed_bots_day ON unreviewed_bots (day);
  CREATE TABLE counted_batches (
    deployment_site_id integer → deployment_sites, instance_id text NOT NULL, boot_id text NOT NULL,
    seq bigint NOT NULL, when_stored text NOT NULL,
    CONSTRAINT counted_batches_pk PRIMARY KEY (deployment_site_id, instance_id, boot_id)
  );
`;

/** Sites that are there get their first key at the start (`first-keys.ts`): it takes the store's key. */
const vault = `
  CREATE TABLE vaults (
    deployment_site_id integer → deployment_sites, keys_made integer NOT NULL, keys_seq bigint NOT NULL,
    certificates_seq bigint, certificates_blob text,
    CONSTRAINT vaults_pk PRIMARY KEY (deployment_site_id)
  );
  CREATE TABLE symmetric_keys (
    id $id, deployment_site_id integer → deployment_sites, name text NOT NULL, key_sealed text NOT NULL,
    version integer NOT NULL, sealed text NOT NULL, when_created text NOT NULL,
    CONSTRAINT symmetric_keys_name UNIQUE (name)
  );
  CREATE INDEX symmetric_keys_deployment_site_id ON symmetric_keys (deployment_site_id);
  CREATE TABLE certificates (
    id $id, deployment_site_id integer → deployment_sites, names text NOT NULL, not_before text NOT NULL,
    not_after text NOT NULL, fingerprint text NOT NULL, chain text NOT NULL, private_key_sealed text NOT NULL,
    key_name text NOT NULL, sealed_key text NOT NULL, when_created text NOT NULL,
    CONSTRAINT certificates_per_site UNIQUE (deployment_site_id, fingerprint)
  );
`;

/** The trail has no index: each change writes it, and hardly anybody reads it (people/audit.ts says how). */
const packagesAndAudit = `
  CREATE TABLE packages (
    id $id, version text NOT NULL, version_key text NOT NULL, file text NOT NULL, size bigint NOT NULL,
    sha256 text NOT NULL, stored_as text NOT NULL, uploaded_by_user_id integer NOT NULL,
    when_created text NOT NULL,
    CONSTRAINT packages_version UNIQUE (version_key)
  );
  CREATE TABLE audit (
    id $id, at text NOT NULL, via text NOT NULL, who text NOT NULL, user_id integer, customer_id integer,
    action text NOT NULL, ids text NOT NULL, change text NOT NULL, address text, request_id text
  );
`;

const restores = `
  CREATE TABLE restores (
    id $id, when_backed_up text NOT NULL, when_restored text NOT NULL, epoch_before text NOT NULL,
    clear_now integer NOT NULL
  );
`;

/** Mail, chat, notifications and alerts. */
const notices = `
  CREATE TABLE outbox (
    id $id, uid text NOT NULL, once_key text, customer_id integer → customers, channel text NOT NULL,
    kind text NOT NULL, recipient text NOT NULL, sealed text NOT NULL, state text NOT NULL,
    attempts integer NOT NULL, due_at text NOT NULL, expires_at text NOT NULL, lease_owner text,
    lease_until text, when_created text NOT NULL, when_ended text, error text,
    CONSTRAINT outbox_uid UNIQUE (uid),
    CONSTRAINT outbox_once_key UNIQUE (once_key)
  );
  CREATE INDEX outbox_channel_state_due_at ON outbox (channel, state, due_at);
  CREATE INDEX outbox_recipient_when_created ON outbox (recipient, when_created);
  CREATE INDEX outbox_customer_id_when_created ON outbox (customer_id, when_created);
  CREATE TABLE recovery_requests (
    id $id, username text NOT NULL, email text NOT NULL, when_created text NOT NULL
  );
  CREATE TABLE recoveries (
    digest text NOT NULL, user_id integer → users, expires_at text NOT NULL,
    CONSTRAINT recoveries_pk PRIMARY KEY (digest)
  );
  CREATE INDEX recoveries_user_id ON recoveries (user_id);
  CREATE TABLE subscriptions (
    id $id, customer_id integer → customers, channel text NOT NULL, type text NOT NULL, email text NOT NULL,
    email_key text NOT NULL, state text NOT NULL, suspended_until text, link_digest text NOT NULL,
    link_sealed text NOT NULL, when_created text NOT NULL, when_updated text NOT NULL,
    CONSTRAINT subscriptions_once UNIQUE (customer_id, channel, type, email_key),
    CONSTRAINT subscriptions_link UNIQUE (link_digest)
  );
  CREATE TABLE chat_channels (
    id $id, customer_id integer → customers, monitor_uid text NOT NULL, chat_channel_name text NOT NULL,
    hook_sealed text NOT NULL, when_created text NOT NULL, when_updated text NOT NULL,
    CONSTRAINT chat_channels_uid UNIQUE (customer_id, monitor_uid)
  );
  CREATE TABLE email_channels (
    id $id, customer_id integer → customers, monitor_uid text NOT NULL, when_created text NOT NULL,
    when_updated text NOT NULL,
    CONSTRAINT email_channels_uid UNIQUE (customer_id, monitor_uid)
  );
  CREATE TABLE notice_runs (
    kind text NOT NULL, period text NOT NULL, covers_until text NOT NULL, after_customer_id integer NOT NULL,
    when_begun text NOT NULL, when_done text,
    CONSTRAINT notice_runs_pk PRIMARY KEY (kind, period)
  );
  CREATE TABLE told_facts (
    customer_id integer → customers, fact text NOT NULL, when_told text NOT NULL,
    CONSTRAINT told_facts_pk PRIMARY KEY (customer_id, fact)
  );
  CREATE TABLE site_versions (
    deployment_site_id integer → deployment_sites, version text NOT NULL, when_seen text NOT NULL,
    CONSTRAINT site_versions_pk PRIMARY KEY (deployment_site_id)
  );
  CREATE TABLE traffic_days (
    domain_id integer → domains, day text NOT NULL, requests bigint NOT NULL, hits bigint NOT NULL,
    blocked bigint NOT NULL, bytes bigint NOT NULL, origin_requests bigint NOT NULL,
    origin_errors bigint NOT NULL,
    CONSTRAINT traffic_days_pk PRIMARY KEY (domain_id, day)
  );
  CREATE INDEX traffic_days_day ON traffic_days (day);
  CREATE TABLE image_blocks (
    domain_id integer → domains, day text NOT NULL, blocked bigint NOT NULL, when_told text,
    CONSTRAINT image_blocks_pk PRIMARY KEY (domain_id, day)
  );
  CREATE TABLE backend_troubles (
    deployment_site_id integer → deployment_sites, instance_id text NOT NULL, domain_id integer → domains,
    kind text NOT NULL, since text NOT NULL, last_bad text NOT NULL, good_since text, requests bigint NOT NULL,
    bad_requests bigint NOT NULL,
    CONSTRAINT backend_troubles_pk PRIMARY KEY (deployment_site_id, instance_id, domain_id, kind)
  );
  CREATE TABLE alerts (
    id $id, customer_id integer → customers, type text NOT NULL, domain_id integer → domains,
    edge text NOT NULL, when_fired text NOT NULL,
    CONSTRAINT alerts_once UNIQUE (type, domain_id, edge)
  );
`;

/** Elements know their set, so that an address is looked up by a few index seeks however many elements there are. */
const elementsBySet = `
  ALTER TABLE bot_elements ADD COLUMN bot_set_id integer DEFAULT 0 NOT NULL;
  UPDATE bot_elements SET bot_set_id = (SELECT bot_set_id FROM bots WHERE bots.id = bot_elements.bot_id);
  DROP INDEX bot_elements_family_first;
  CREATE INDEX bot_elements_bot_set_id_family_first ON bot_elements (bot_set_id, family, first);
`;

/** Operators may lock users. */
const lockedUsers = "ALTER TABLE users ADD COLUMN when_locked text";

/** Marks of many elements are written beside what is in force; the index finds the bots that only an import makes. */
const heldBots = `
  ALTER TABLE dead_bots ADD COLUMN held_until text;
  CREATE INDEX bots_bot_set_id_count ON bots (bot_set_id, count);
`;

/**
 * Messages are counted by customer and recipient, and releases are known by instance. What was known by deployment does not say whose it was; what each runs now is told
 * to nobody as a change.
 */
const turns = `
  CREATE INDEX outbox_customer_id_recipient_due_at ON outbox (customer_id, recipient, due_at);
  CREATE INDEX outbox_customer_id_due_at ON outbox (customer_id, due_at);
  DROP INDEX outbox_customer_id_when_created;
  CREATE TABLE instance_versions (
    deployment_site_id integer → deployment_sites, instance_id text NOT NULL, version text NOT NULL,
    when_seen text NOT NULL,
    CONSTRAINT instance_versions_pk PRIMARY KEY (deployment_site_id, instance_id)
  );
  INSERT INTO instance_versions (deployment_site_id, instance_id, version, when_seen)
    SELECT deployment_site_id, instance_id, agent_version, last_seen FROM instances
    WHERE agent_version != '' AND deployment_site_id IN (SELECT id FROM deployment_sites);
  DROP TABLE site_versions;
`;

/**
 * Each instance's position is kept as it told it, with the store and the digest that it belongs to. What stands in applied_seq was told by hello or inferred from a
 * snapshot; without digest and time it is not shown. Agents say hello when central is back.
 */
const positions = `
  ALTER TABLE instances ADD COLUMN epoch text;
  ALTER TABLE instances ADD COLUMN chain text;
  ALTER TABLE instances ADD COLUMN oldest_unfinished text;
  ALTER TABLE instances ADD COLUMN position_at text;
`;

/**
 * Adds where in each journal a bot set was told last: the receipts of that entry prove that marks are in
 * force. A set that was told before has no row until its next change or link; what is proved of it is not
 * known.
 */
const setDeployments = `
  CREATE TABLE bot_set_deployments (
    bot_set_id integer → bot_sets, deployment_site_id integer NOT NULL, version integer NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT bot_set_deployments_pk PRIMARY KEY (bot_set_id, deployment_site_id)
  );
`;

/** Clears by URLs, prefixes and hosts: what was named, and what goes beside a body of the journal. */
const clearItems = `
  ALTER TABLE clears ADD COLUMN items text;
  ALTER TABLE clears ADD COLUMN has_extension integer NOT NULL DEFAULT 0;
  ALTER TABLE journal_bodies ADD COLUMN extension text;
`;

/** Lists of past clears go by a number that counts within the domain. */
const clearNumbers = `
  ALTER TABLE clears ADD COLUMN no bigint NOT NULL DEFAULT 0;
  UPDATE clears SET no = numbered.no FROM (
    SELECT id, row_number() OVER (PARTITION BY domain_id ORDER BY when_created, id) AS no FROM clears
  ) AS numbered WHERE numbered.id = clears.id;
  CREATE UNIQUE INDEX clears_domain_id_no ON clears (domain_id, no);
`;

/** Codes with which hosts join a deployment site. */
const enrolments = `
  CREATE TABLE enrolments (
    id $id, deployment_site_id integer → deployment_sites, digest text NOT NULL, uses integer NOT NULL,
    used integer NOT NULL, created_by text NOT NULL, when_created text NOT NULL, when_expires text NOT NULL,
    when_revoked text,
    CONSTRAINT enrolments_digest UNIQUE (digest)
  );
  CREATE INDEX enrolments_deployment_site_id ON enrolments (deployment_site_id);
  CREATE TABLE enrolment_uses (
    enrolment_id integer → enrolments, nonce_digest text NOT NULL, address text NOT NULL, at text NOT NULL,
    CONSTRAINT enrolment_uses_pk PRIMARY KEY (enrolment_id, nonce_digest)
  );
`;

/** Every secret16 that was rotated has its own grace. */
const oldSecrets = `
  CREATE TABLE old_secrets (
    id $id, deployment_site_id integer → deployment_sites, secret_sealed text NOT NULL, until text NOT NULL
  );
  CREATE INDEX old_secrets_deployment_site_id ON old_secrets (deployment_site_id);
  INSERT INTO old_secrets (deployment_site_id, secret_sealed, until)
    SELECT id, secret_old_sealed, secret_old_until FROM deployment_sites
    WHERE secret_old_sealed IS NOT NULL AND secret_old_until IS NOT NULL;
  ALTER TABLE deployment_sites DROP COLUMN secret_old_sealed;
  ALTER TABLE deployment_sites DROP COLUMN secret_old_until;
`;

/** Activations on all instances of a domain's sites or on none. */
const fleetActivations = `
  CREATE TABLE fleet_activations (
    id $id, domain_id integer → domains, viewset_id integer → viewsets, manifest_blob text NOT NULL,
    before_viewset_id integer, state text NOT NULL, reason text, when_started text NOT NULL,
    deadline text NOT NULL, when_ended text
  );
  CREATE INDEX fleet_activations_domain_id ON fleet_activations (domain_id);
  CREATE INDEX fleet_activations_state ON fleet_activations (state);
  CREATE TABLE fleet_activation_sites (
    activation_id integer → fleet_activations, deployment_site_id integer NOT NULL, seq bigint NOT NULL,
    CONSTRAINT fleet_activation_sites_pk PRIMARY KEY (activation_id, deployment_site_id)
  );
  CREATE TABLE fleet_activation_members (
    activation_id integer → fleet_activations, deployment_site_id integer NOT NULL, instance_id text NOT NULL,
    when_joined text NOT NULL,
    CONSTRAINT fleet_activation_members_pk PRIMARY KEY (activation_id, deployment_site_id, instance_id)
  );
  CREATE INDEX viewset_deployments_place ON viewset_deployments (deployment_site_id, seq);
`;

/** Which version was active when. What was before is not known. */
const activations = `
  CREATE TABLE viewset_activations (
    id $id, domain_id integer → domains, viewset_id integer → viewsets, at text NOT NULL
  );
  CREATE INDEX viewset_activations_domain_id ON viewset_activations (domain_id, id);
  CREATE INDEX viewset_activations_viewset_id ON viewset_activations (viewset_id, id);
`;

/** What a token may do, where and for how long. Those from before may do everything. */
const tokenRoles = `
  ALTER TABLE tokens ADD COLUMN name text NOT NULL DEFAULT '';
  ALTER TABLE tokens ADD COLUMN role text NOT NULL DEFAULT 'owner';
  ALTER TABLE tokens ADD COLUMN domains text;
  ALTER TABLE tokens ADD COLUMN is_session integer NOT NULL DEFAULT 0;
  ALTER TABLE tokens ADD COLUMN when_expires text;
  ALTER TABLE tokens ADD COLUMN when_last_used text;
`;

/** A step from before `store_steps`. A later one is an `expansion` or a `contraction`. */
const step = (statements: string): StoreStep => ({
  up: async (db: Db) => runStatements(db, statements),
  needs: "itself",
});

export const migrations = {
  "0001-people": step(people),
  "0002-sites-and-domains": step(sitesAndDomains),
  "0003-viewsets": step(viewsets),
  "0004-bots": step(bots),
  "0005-journal": step(journal),
  "0006-bot-elements-by-set": step(elementsBySet),
  "0007-bot-delivery": { up: botDelivery, needs: "itself" },
  "0008-unreviewed-bots": step(unreviewedBots),
  "0009-vault": step(vault),
  "0010-packages-and-audit": step(packagesAndAudit),
  "0011-restores": step(restores),
  "0012-notices": step(notices),
  "0013-locked-users": step(lockedUsers),
  "0014-held-bots": step(heldBots),
  "0015-turns": step(turns),
  "0016-positions": step(positions),
  "0017-set-deployments": step(setDeployments),
  "0018-clear-items": step(clearItems),
  "0019-clear-numbers": step(clearNumbers),
  "0020-enrolments": step(enrolments),
  "0021-old-secrets": step(oldSecrets),
  "0022-fleet-activations": step(fleetActivations),
  "0023-rollouts": step(rollouts),
  "0024-token-roles": step(tokenRoles),
  "0025-alert-history": step(alertHistory),
  "0026-activations": step(activations),
  "0027-bot-sources": step(botSources),
  "0028-acme": step(acme),
  "0029-policy-classes": step(botClassPolicies),
  "0030-image-days": step(imageDays),
  "0031-acme-tries": step(acmeTries),
  "0032-object-keys": step(objectKeys),
  "0033-commit-marks": step(commitMarks),
  "0034-centrals": step(centrals),
  "0036-imports-without": step(importsWithout),
  "0038-store-steps": expansion(storeSteps),
  "0039-central-settings": expansion(centralSettings),
} as const satisfies StoreSteps;
