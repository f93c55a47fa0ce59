// The next step of a rollout: facts in, the rollout as it is then out. It asks neither clock nor store, so that central may stop between any two steps.
//
//   waiting → asked → watched → proven                     one wave after the other, the canary first
//              └ missed (could not install)  └ bad sign → all that may have it: going_back → back | stuck

import {
  type ReleaseStanding,
  type Rollout,
  type RolloutMember,
  type RolloutState,
} from "./rollout.ts";
import { judgeMember, judgeReturn, turned, type StepTime } from "./rollout-signs.ts";

export type StandingOf = (key: string) => ReleaseStanding | undefined;

/** How much longer silence is where central hears nobody: then it is central that is cut off. */
const deafFactor = 3;

/** Returns the rollout after one step. One that is over goes on only where a host is still to go back. */
export function stepRollout(
  rollout: Rollout,
  standingOf: StandingOf,
  now: Pick<StepTime, "nowMs" | "upSinceMs">,
): Rollout {
  const time: StepTime = {
    ...now,
    silenceFactor: factorOf(rollout, standingOf, now.nowMs),
    elsewhere: warningsElsewhere(rollout, standingOf),
  };
  if (rollout.state === "running" || rollout.state === "paused") {
    const judged = rollout.members.map((member) => {
      const { sign, member: next } = judgeMember(rollout, member, standingOf(member.key), time);
      return sign === undefined ? { next } : { next: { ...next, reason: sign }, sign };
    });
    const members = judged.map(({ next }) => next);
    const bad = judged.find(({ sign }) => sign !== undefined);
    if (bad?.sign !== undefined)
      return goBack({ ...rollout, members }, `${bad.next.key}: ${bad.sign}`, time.nowMs);
    return rollout.state === "paused"
      ? { ...rollout, members }
      : goOn({ ...rollout, members }, standingOf, time);
  }
  const members = rollout.members.map((member) =>
    judgeReturn(rollout, member, standingOf(member.key), time),
  );
  if (rollout.state !== "returning" || members.some(({ state }) => state === "going_back"))
    return { ...rollout, members };
  return { ...rollout, members, state: "returned" };
}

/** Returns the rollout on its way back: whoever may have the release is to have what it had. */
export function goBack(rollout: Rollout, reason: string, nowMs: number): Rollout {
  const members = rollout.members.map((member) => {
    if (isGiven(member)) return turned(member, "going_back", { nowMs }, member.reason);
    if (member.state !== "waiting") return member;
    return turned(member, "stays", { nowMs }, "the release went back before its turn");
  });
  return { ...rollout, members, state: "returning", reason };
}

/** Returns a rollout that asks nobody further. What runs is still watched. */
export const pauseRollout = (rollout: Rollout, reason: string): Rollout => ({
  ...rollout,
  state: "paused",
  reason,
});

/** Returns a rollout that goes on, with what the operator has seen. */
export const resumeRollout = (rollout: Rollout): Rollout => ({
  ...rollout,
  state: "running",
  reason: null,
  missesSeen: missesOf(rollout),
});

/** Whether a member was given the release, and may have it. */
const isGiven = ({ state }: RolloutMember): boolean =>
  state === "asked" || state === "watched" || state === "proven";

const missesOf = ({ members }: Rollout): number =>
  members.filter(({ state }) => state === "missed").length;

function goOn(rollout: Rollout, standingOf: StandingOf, time: StepTime): Rollout {
  const { plan } = rollout;
  const misses = missesOf(rollout) - rollout.missesSeen;
  if (misses >= plan.missesMax) {
    const last = rollout.members.findLast(({ state }) => state === "missed");
    const text = `${misses} hosts could not install ${rollout.release}, the last one: ${last?.reason ?? ""}`;
    return pauseRollout(rollout, text);
  }
  const isLate = time.nowMs - rollout.startedMs > plan.boundMs;
  const asked = isLate ? late(rollout, time) : ask(widened(rollout), standingOf, time);
  const isUnderWay = asked.members.some(
    ({ state }) => state === "waiting" || state === "asked" || state === "watched",
  );
  return isUnderWay ? asked : { ...asked, state: "done" satisfies RolloutState, reason: null };
}

/** The next wave begins when the one before has proved itself, whole. */
function widened(rollout: Rollout): Rollout {
  const given = rollout.members.filter(isGiven);
  const isProved = given.length >= rollout.budget && given.every(({ state }) => state === "proven");
  if (!isProved) return rollout;
  const wave = Math.max(1, Math.floor((rollout.members.length * rollout.plan.wavePercent) / 100));
  return { ...rollout, budget: given.length + wave };
}

/** Asks as many as the budget allows, and one host of a site at a time. */
function ask(rollout: Rollout, standingOf: StandingOf, time: StepTime): Rollout {
  let free = rollout.budget - rollout.members.filter(isGiven).length;
  const busy = new Set(
    rollout.members.filter(({ state }) => state === "asked").map(({ siteId }) => siteId),
  );
  const members = rollout.members.map((member) => {
    if (free <= 0 || member.state !== "waiting") return member;
    const standing = standingOf(member.key);
    if (isStillToSpeak(rollout, standing, time)) return member;
    const why = whyNot(rollout, standing, time);
    if (why !== undefined || standing === undefined) return turned(member, "stays", time, why);
    if (busy.has(member.siteId)) return member;
    free--;
    busy.add(member.siteId);
    const { requests, errors, warnings } = standing;
    const before = { requests, errors, warnings };
    return { ...turned(member, "asked", time), had: standing.version, before };
  });
  return { ...rollout, members };
}

/** An agent says by itself how it stands at least so often. */
const firstWordMs = 60_000;

/** Whether a host has not spoken since the rollout or central started, and has time to: what it said before may not be so any more. */
function isStillToSpeak(
  { startedMs }: Rollout,
  standing: ReleaseStanding | undefined,
  { nowMs, upSinceMs }: StepTime,
): boolean {
  const fromMs = Math.max(startedMs, upSinceMs);
  if (standing !== undefined && standing.heardMs >= fromMs) return false;
  return nowMs - fromMs <= firstWordMs;
}

/** Why a host does not get the release when it is its turn. */
function whyNot(
  { release, plan }: Rollout,
  standing: ReleaseStanding | undefined,
  { nowMs }: StepTime,
): string | undefined {
  if (standing === undefined) return "its agent is too old to be rolled";
  if (nowMs - standing.heardMs > plan.silenceMs) return "away when it was its turn";
  if (standing.version === release) return `has ${release} already`;
  if (standing.takes === "held") return "pinned: its packages are held";
  if (standing.takes === "off") return "this host does not let central install releases";
  return undefined;
}

function late(rollout: Rollout, time: StepTime): Rollout {
  const members = rollout.members.map((member) =>
    member.state === "waiting"
      ? turned(member, "stays", time, "the time of the rollout was over")
      : member,
  );
  return { ...rollout, members };
}

function warningsElsewhere(
  { release, members }: Rollout,
  standingOf: StandingOf,
): ReadonlySet<string> {
  return new Set(
    members.flatMap((member) => {
      const standing = isGiven(member) ? undefined : standingOf(member.key);
      return standing === undefined || standing.version === release ? [] : standing.warnings;
    }),
  );
}

function factorOf({ plan, members }: Rollout, standingOf: StandingOf, nowMs: number): number {
  const isHeard = members.some(
    ({ key }) => nowMs - (standingOf(key)?.heardMs ?? -Infinity) <= plan.silenceMs,
  );
  return isHeard ? 1 : deafFactor;
}

/** Returns the members in an order in which the hosts of one site are far apart: the first of each site, then the second. */
export function spreadOverSites<M extends { readonly siteId: number }>(
  members: readonly M[],
): readonly M[] {
  const bySite = [...Map.groupBy(members, ({ siteId }) => siteId).values()];
  const longest = Math.max(0, ...bySite.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) =>
    bySite.flatMap((hosts) => hosts.slice(at, at + 1)),
  ).flat();
}

/** Returns what one step changed, by key. */
export function changedMembers(before: Rollout, after: Rollout): readonly RolloutMember[] {
  return after.members.filter((member, at) => member !== before.members[at]);
}
