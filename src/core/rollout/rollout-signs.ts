// What speaks against a release on one host, and what it proves: a member and what its agent said last, compared with what it was before.

import {
  orderOf,
  type MemberState,
  type ReleaseStanding,
  type Rollout,
  type RolloutMember,
} from "./rollout.ts";

export type StepTime = {
  readonly nowMs: number;
  /** Since when central can hear: silence before it says nothing. */
  readonly upSinceMs: number;
  /** How long central itself heard nobody counts against nobody: the factor by which silence is longer then. */
  readonly silenceFactor: number;
  /** Warnings of hosts that do not have the release: what also stands there is not the release's doing. */
  readonly elsewhere: ReadonlySet<string>;
};

export type MemberJudged = {
  readonly member: RolloutMember;
  /** What speaks against the release; undefined: nothing. */
  readonly sign?: string;
};

/** A proven host that starts again so often is in a loop of crashes; one restart may be anybody's. */
const provenRestartsMax = 2;

/** Returns the member as it is now, in the hope of the release. Members that go back are judged by `judgeReturn`. */
export function judgeMember(
  rollout: Rollout,
  member: RolloutMember,
  standing: ReleaseStanding | undefined,
  time: StepTime,
): MemberJudged {
  if (member.state === "asked") return judgeAsked(rollout, member, standing, time);
  if (member.state === "watched" || member.state === "proven")
    return judgeRunning(rollout, member, standing, time);
  return { member };
}

function judgeAsked(
  rollout: Rollout,
  member: RolloutMember,
  standing: ReleaseStanding | undefined,
  time: StepTime,
): MemberJudged {
  const { plan, release } = rollout;
  const order = ownOrder(rollout, member, standing);
  if (standing?.version === release && standing.isReady) {
    const running = { bootId: standing.bootId, reason: null, uneasySinceMs: null };
    return { member: { ...turned(member, "watched", time), ...running } };
  }
  if (order?.state === "returned")
    return { member: turned(member, "back", time, order.reason), sign: order.reason };
  // The host runs what it ran: nothing speaks against the release.
  if ((order?.state === "refused" || order?.state === "failed") && standing?.version !== release)
    return { member: turned(member, "missed", time, order.reason) };
  if (isLost(rollout, member, standing, time))
    return { member, sign: `was not heard for ${seconds(plan.silenceMs)} after it was asked` };
  if (since(member, time) <= plan.installMs) return { member };
  const text =
    standing?.version === release
      ? `${release} was not ready within ${seconds(plan.installMs)}`
      : `did not run ${release} within ${seconds(plan.installMs)}`;
  return { member, sign: text };
}

function judgeRunning(
  rollout: Rollout,
  member: RolloutMember,
  standing: ReleaseStanding | undefined,
  time: StepTime,
): MemberJudged {
  const { plan, release } = rollout;
  const isProven = member.state === "proven";
  if (!isProven && isLost(rollout, member, standing, time))
    return { member, sign: `was not heard for ${seconds(plan.silenceMs)}` };
  if (standing === undefined) return { member };
  if (standing.version !== release) {
    const why = ownOrder(rollout, { ...member, state: "asked" }, standing)?.reason ?? "";
    const text = why === "" ? `runs ${standing.version} again, without central's word` : why;
    const to = standing.version === member.had ? "back" : "stays";
    return { member: turned(member, to, time, text), sign: text };
  }
  const restarts = member.restarts + (standing.bootId === member.bootId ? 0 : 1);
  const seen = { ...member, restarts, bootId: standing.bootId };
  const allowed = isProven ? plan.restartsMax + provenRestartsMax : plan.restartsMax;
  if (restarts > allowed)
    return { member: seen, sign: `started again under ${release} (${restarts})` };
  const share = risenShare(rollout, member, standing);
  if (share !== undefined) return { member: seen, sign: share };
  const unease = uneaseOf(member, standing, time);
  const uneasySinceMs = unease === undefined ? null : (member.uneasySinceMs ?? time.nowMs);
  const now = { ...seen, uneasySinceMs };
  if (unease !== undefined && time.nowMs - (uneasySinceMs ?? 0) > plan.graceMs)
    return { member: now, sign: unease };
  const soaked = time.nowMs - member.sinceMs >= plan.soakMs && unease === undefined;
  return { member: soaked && !isProven ? turned(now, "proven", time) : now };
}

/** What may pass: an agent that starts has reasons to warn of. */
function uneaseOf(
  member: RolloutMember,
  standing: ReleaseStanding,
  { elsewhere }: StepTime,
): string | undefined {
  if (!standing.isReady) return "is not ready";
  const fresh = standing.warnings.filter(
    (code) => member.before?.warnings.includes(code) !== true && !elsewhere.has(code),
  );
  return fresh.length === 0 ? undefined : `warns of ${fresh.join(", ")}, as it did not before`;
}

function risenShare(
  { plan }: Rollout,
  { before }: RolloutMember,
  { requests, errors }: ReleaseStanding,
): string | undefined {
  if (requests < plan.answersMin) return undefined;
  const was = before === null || before.requests === 0 ? 0 : before.errors / before.requests;
  const is = errors / requests;
  if (is - was <= plan.errorShareMax) return undefined;
  return `${percent(is)} of its answers have a status of 500 or more, ${percent(was)} before`;
}

/** Returns a member that goes back, or should, as it is now. */
export function judgeReturn(
  rollout: Rollout,
  member: RolloutMember,
  standing: ReleaseStanding | undefined,
  time: StepTime,
): RolloutMember {
  if (member.state !== "going_back" && member.state !== "stuck") return member;
  const order = ownOrder(rollout, member, standing);
  // It has heard of this order: what it was asked before is not under way any more.
  if (order?.state === "done" && standing?.version === member.had)
    return turned(member, "back", time, member.reason);
  if (member.state === "stuck") return member;
  if (order?.state === "refused" || order?.state === "failed" || order?.state === "returned")
    return turned(member, "stuck", time, both(member.reason, order.reason));
  if (since(member, time) <= rollout.plan.installMs) return member;
  const text = `did not go back to ${member.had} within ${seconds(rollout.plan.installMs)}`;
  return turned(member, "stuck", time, both(member.reason, text));
}

/** Returns a member in another state. */
export function turned(
  member: RolloutMember,
  state: MemberState,
  { nowMs }: Pick<StepTime, "nowMs">,
  reason: string | null = null,
): RolloutMember {
  return { ...member, state, reason, sinceMs: nowMs, uneasySinceMs: null };
}

export const both = (first: string | null, second: string): string =>
  first === null ? second : `${first}; ${second}`;

function ownOrder(
  rollout: Rollout,
  member: RolloutMember,
  standing: ReleaseStanding | undefined,
): ReleaseStanding["order"] {
  const order = standing?.order ?? null;
  return order?.id === orderOf(rollout, member)?.id ? order : null;
}

/** The time that a member had to do something, while central could hear of it. */
function since({ sinceMs }: RolloutMember, { nowMs, upSinceMs }: StepTime): number {
  return nowMs - Math.max(sinceMs, upSinceMs);
}

function isLost(
  { plan }: Rollout,
  member: RolloutMember,
  standing: ReleaseStanding | undefined,
  { nowMs, upSinceMs, silenceFactor }: StepTime,
): boolean {
  const heardMs = Math.max(standing?.heardMs ?? 0, member.sinceMs, upSinceMs);
  return nowMs - heardMs > plan.silenceMs * silenceFactor;
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
