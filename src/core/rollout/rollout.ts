// How a release is rolled over hosts, as values: what is planned, what is known of each member, and what an order is.
//
// `rollout-step.ts` decides what comes next; `rollout-signs.ts` says what speaks against a release.

/** Limits of one rollout; all are fixed when it starts. Times are milliseconds. */
export type RolloutPlan = {
  /** How many hosts get the release first. */
  readonly canary: number;
  /** How many get it at a time once the canary proved itself, in percent of all members. */
  readonly wavePercent: number;
  /** How long a host runs the release without a bad sign until it has proved itself. */
  readonly soakMs: number;
  /** How long what may pass (not ready, a new warning) may last. */
  readonly graceMs: number;
  /** Within it a host runs what it was asked to run. */
  readonly installMs: number;
  /** A host that is not heard for so long is lost. */
  readonly silenceMs: number;
  /** After it no further host is asked. */
  readonly boundMs: number;
  /** How often an agent may start again under the release until it has proved itself. */
  readonly restartsMax: number;
  /** By how much the share of answers with a status of 500 or more may rise: 0.02 is from 1 % to 3 %. */
  readonly errorShareMax: number;
  /** Shares of fewer answers say nothing. */
  readonly answersMin: number;
  /** A rollout pauses when so many hosts could not install the release. */
  readonly missesMax: number;
};

/**
 * `waiting`: not asked yet. `asked`: wants the release, and is not seen to run it. `watched`: runs it. `proven`: ran it for the soak without a bad sign.
 * `going_back`: wants the version that it had. `back`: has it again. `stuck`: did not go back in time, and is still told to. `stays`: was never to get the
 * release, for the reason told. `missed`: was asked and could not install it, so it runs what it ran.
 */
export type MemberState =
  | "waiting"
  | "asked"
  | "watched"
  | "proven"
  | "going_back"
  | "back"
  | "stuck"
  | "stays"
  | "missed";

/** What an instance was like when it was asked. */
export type MemberBefore = {
  readonly requests: number;
  readonly errors: number;
  readonly warnings: readonly string[];
};

export type RolloutMember = {
  /** Which instance it is, of all members of a rollout. */
  readonly key: string;
  readonly siteId: number;
  readonly state: MemberState;
  /** Why it is in its state, or what spoke against the release here; null: nothing to tell. */
  readonly reason: string | null;
  /** The version that it had. */
  readonly had: string;
  /** Since when it is in its state. */
  readonly sinceMs: number;
  readonly before: MemberBefore | null;
  /** The start of the agent that runs the release; null: none was seen. */
  readonly bootId: string | null;
  /** How often it started again under the release. */
  readonly restarts: number;
  /** Since when something speaks against the release that may pass. */
  readonly uneasySinceMs: number | null;
};

/** `returning` and `returned`: the release went back. */
export type RolloutState = "running" | "paused" | "returning" | "returned" | "done";

export type Rollout = {
  /** Part of the ids of its orders; no other rollout has it. */
  readonly token: string;
  readonly release: string;
  readonly plan: RolloutPlan;
  readonly state: RolloutState;
  readonly reason: string | null;
  /** How many hosts may have been given the release so far. */
  readonly budget: number;
  /** How many hosts that could not install it are known to the operator who went on. */
  readonly missesSeen: number;
  readonly startedMs: number;
  /** In the order in which they are asked. */
  readonly members: readonly RolloutMember[];
};

export type OrderState = "taken" | "installing" | "done" | "refused" | "failed" | "returned";

/** What an instance said last. Counts are since its start. */
export type ReleaseStanding = {
  readonly heardMs: number;
  readonly version: string;
  readonly bootId: string;
  /** Whether central may install here: `off` was never allowed, `held` is pinned. */
  readonly takes: "yes" | "off" | "held";
  readonly isReady: boolean;
  readonly requests: number;
  readonly errors: number;
  /** Codes of the warnings and errors in force. */
  readonly warnings: readonly string[];
  /** The last order that it heard of. */
  readonly order: {
    readonly id: string;
    readonly state: OrderState;
    readonly reason: string;
  } | null;
};

export type ReleaseOrder = { readonly id: string; readonly version: string };

/** Returns the order that holds for a member; undefined where it is to stay as it is. */
export function orderOf(
  { token, release }: Pick<Rollout, "token" | "release">,
  { state, had }: Pick<RolloutMember, "state" | "had">,
): ReleaseOrder | undefined {
  if (state === "asked") return { id: `${token}-go`, version: release };
  if (state === "going_back" || state === "stuck") return { id: `${token}-back`, version: had };
  return undefined;
}

export const isOpen = ({ state }: Pick<Rollout, "state">): boolean =>
  state === "running" || state === "paused" || state === "returning";
