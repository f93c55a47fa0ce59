// The tables of rollouts, in the manner of schema.ts, and the step that makes them.

import type { Generated } from "kysely";
import type { MemberState, ReleaseStanding, RolloutState } from "../../../core/rollout/rollout.ts";

export type RolloutTables = {
  /** Releases that are rolled over a customer's hosts (`store/rollouts/`). */
  rollouts: {
    id: Generated<number>;
    customer_id: number;
    /** Part of the ids of its orders. */
    token: string;
    /** The release. */
    version: string;
    /** Null: all sites of the customer. */
    tag: string | null;
    /** JSON, `RolloutPlan`. */
    plan: string;
    state: RolloutState;
    reason: string | null;
    budget: number;
    misses_seen: number;
    started_by: string;
    when_started: string;
    when_ended: string | null;
    /** Of the store that it was started in: a restored one has another. */
    epoch: string;
  };
  rollout_members: {
    rollout_id: number;
    deployment_site_id: number;
    instance_id: string;
    /** Its place among those that are asked. */
    position: number;
    state: MemberState;
    reason: string | null;
    /** The version that it had. */
    had: string;
    since: string;
    /** JSON, `MemberBefore`. */
    was: string | null;
    boot_id: string | null;
    restarts: number;
    uneasy_since: string | null;
  };
  /** What each instance said of its release last. */
  release_standings: {
    deployment_site_id: number;
    instance_id: string;
    boot_id: string;
    version: string;
    takes: ReleaseStanding["takes"];
    is_ready: number;
    requests: number;
    errors: number;
    /** JSON list of codes. */
    warnings: string;
    /** JSON: the order that it heard of last, and what came of it. */
    told_order: string | null;
    heard_at: string;
  };
};

/** Releases that are rolled over hosts, and what hosts say of theirs. A member outlives its site, as a name. */
export const rollouts = `
  CREATE TABLE rollouts (
    id $id, customer_id integer → customers, token text NOT NULL, version text NOT NULL, tag text,
    plan text NOT NULL, state text NOT NULL, reason text, budget integer NOT NULL, misses_seen integer NOT NULL,
    started_by text NOT NULL, when_started text NOT NULL, when_ended text, epoch text NOT NULL
  );
  CREATE INDEX rollouts_customer_id_state ON rollouts (customer_id, state);
  CREATE TABLE rollout_members (
    rollout_id integer → rollouts, deployment_site_id integer NOT NULL, instance_id text NOT NULL,
    position integer NOT NULL, state text NOT NULL, reason text, had text NOT NULL, since text NOT NULL,
    was text, boot_id text, restarts integer NOT NULL, uneasy_since text,
    CONSTRAINT rollout_members_pk PRIMARY KEY (rollout_id, deployment_site_id, instance_id)
  );
  CREATE INDEX rollout_members_deployment_site_id ON rollout_members (deployment_site_id, instance_id, rollout_id);
  CREATE INDEX rollout_members_state ON rollout_members (state);
  CREATE TABLE release_standings (
    deployment_site_id integer → deployment_sites, instance_id text NOT NULL, boot_id text NOT NULL,
    version text NOT NULL, takes text NOT NULL, is_ready integer NOT NULL, requests bigint NOT NULL,
    errors bigint NOT NULL, warnings text NOT NULL, told_order text, heard_at text NOT NULL,
    CONSTRAINT release_standings_pk PRIMARY KEY (deployment_site_id, instance_id)
  );
`;
