// The tables of rollouts, in the manner of schema.ts.

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
