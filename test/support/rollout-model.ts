// Hosts as a rollout meets them: some good, some that die, crash, warn, refuse, are pinned or too old; central that restarts. It judges what no rollout may do.

import {
  orderOf,
  isOpen,
  type ReleaseOrder,
  type ReleaseStanding,
  type Rollout,
  type RolloutMember,
  type RolloutPlan,
} from "../../src/core/rollout/rollout.ts";
import {
  goBack,
  pauseRollout,
  resumeRollout,
  spreadOverSites,
  type StandingOf,
} from "../../src/core/rollout/rollout-step.ts";

export type Step = (
  rollout: Rollout,
  standingOf: StandingOf,
  time: { readonly nowMs: number; readonly upSinceMs: number },
) => Rollout;

const release = "2.0.0";
const hadVersions = ["1.0.0", "1.1.0"];

/** What a host is like, and what becomes of it under the release. */
const kinds = [
  "good",
  "good",
  "good",
  "crashes", // Does not start: the host goes back by itself.
  "dies", // Starts, and is not heard again until somebody restarts it.
  "restarts",
  "errs",
  "warns",
  "slow", // Installs longer than it may.
  "no-package",
  "held",
  "off",
  "old",
  "away",
] as const;
type Kind = (typeof kinds)[number];
/** What speaks against the release for as long as it runs, and is seen however long central was away. */
const bad: ReadonlySet<Kind> = new Set(["crashes", "dies", "restarts", "errs", "warns"]);
const never: ReadonlySet<Kind> = new Set(["held", "off", "old"]);

type Host = {
  readonly key: string;
  readonly kind: Kind;
  readonly had: string;
  version: string;
  boot: number;
  bootedMs: number;
  isAlive: boolean;
  /** Dies and comes back by the power of others. */
  revivesMs: number;
  /** What the host installs now. */
  installing: { readonly order: ReleaseOrder; readonly endsMs: number } | null;
  outcome: { readonly id: string; readonly state: "failed" | "returned" } | null;
  heard: ReleaseOrder | null;
  ordersHeard: number;
};

export type ModelOptions = { readonly seed: number; readonly step: Step; readonly onlyGood?: true };

/** Runs one rollout to its end. Returns what was wrong; nothing if all was right. */
export function runRolloutModel({ seed, step, onlyGood }: ModelOptions): readonly string[] {
  const random = mulberry(seed);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const between = (least: number, most: number): number =>
    least + Math.floor(random() * (most - least + 1));
  const plan: RolloutPlan = {
    canary: between(1, 3),
    wavePercent: between(1, 60),
    soakMs: between(40, 200) * 1_000,
    graceMs: between(5, 30) * 1_000,
    installMs: between(60, 180) * 1_000,
    silenceMs: between(20, 60) * 1_000,
    boundMs: between(3, 60) * 60_000,
    restartsMax: between(0, 1),
    errorShareMax: 0.02,
    answersMin: 50,
    missesMax: between(1, 3),
  };
  const chosen = (onlyGood ?? random() < 0.3) ? (["good"] as const) : kinds;
  const isAllGood = chosen.length === 1;
  const hosts: Host[] = Array.from({ length: between(1, 14) }, (_, no) => {
    const had = pick(hadVersions);
    return {
      key: `${between(1, 5)}/instance-${no}`,
      kind: pick(chosen),
      had,
      version: had,
      boot: 1,
      bootedMs: 0,
      isAlive: true,
      revivesMs: Infinity,
      installing: null,
      outcome: null,
      heard: null,
      ordersHeard: 0,
    };
  });
  const members: RolloutMember[] = hosts.map(({ key, had }) => ({
    key,
    siteId: Number(key.split("/")[0]),
    state: "waiting",
    reason: null,
    had,
    sinceMs: 0,
    before: null,
    bootId: null,
    restarts: 0,
    uneasySinceMs: null,
  }));
  let rollout: Rollout = {
    token: "t1",
    release,
    plan,
    state: "running",
    reason: null,
    budget: plan.canary,
    missesSeen: 0,
    startedMs: 0,
    members: spreadOverSites(members),
  };
  const standings = new Map<string, ReleaseStanding>();
  const wrong = new Set<string>();
  let [upSinceMs, isUp] = [0, true];
  let downUntilMs = 0;
  let isByOperator = false;
  const provenAfter = new Map<string, number>();
  const endMs = plan.boundMs + (plan.soakMs + plan.graceMs + plan.installMs) * 4 + 3_600_000;
  let nowMs = 0;
  for (; nowMs < endMs && (nowMs === 0 || isOpenAt(rollout)); nowMs += 5_000) {
    if (isUp && random() < 0.004) {
      isUp = false;
      downUntilMs = nowMs + between(1, 100) * 1_000;
    }
    if (!isUp && nowMs >= downUntilMs) {
      [isUp, upSinceMs] = [true, nowMs];
      rollout = JSON.parse(JSON.stringify(rollout)) as Rollout; // All that central knows is stored.
    }
    for (const host of hosts) {
      run(host, nowMs, between);
      if (!isUp || !host.isAlive || host.kind === "old") continue;
      if (host.kind === "away" && Math.floor(nowMs / 300_000) % 2 === 1) continue;
      standings.set(host.key, told(host, nowMs));
      const member = rollout.members.find(({ key }) => key === host.key);
      const order = member === undefined ? undefined : orderOf(rollout, member);
      host.heard = order ?? null;
      if (order !== undefined) obey(host, order, nowMs, plan, between);
    }
    if (!isUp) continue;
    const before = rollout;
    rollout = step(rollout, (key) => standings.get(key), { nowMs, upSinceMs });
    if (rollout.state === "paused" && random() < 0.05)
      if (random() < 0.6) rollout = resumeRollout(rollout);
      else [rollout, isByOperator] = [goBack(rollout, "by the operator", nowMs), true];
    if (rollout.state === "running" && random() < 0.002)
      rollout = pauseRollout(rollout, "operator");
    if (isOpen(rollout) && rollout.state !== "returning" && random() < 0.0005)
      [rollout, isByOperator] = [goBack(rollout, "by the operator", nowMs), true];
    for (const fault of judge(before, rollout, hosts)) wrong.add(fault);
    for (const member of rollout.members) {
      const was = before.members.find(({ key }) => key === member.key);
      if (member.state === "proven" && was?.state !== "proven")
        provenAfter.set(member.key, nowMs - (was?.sinceMs ?? nowMs));
    }
  }
  for (const [key, ms] of provenAfter)
    if (ms < plan.soakMs) wrong.add(`${key} was proven after ${ms} ms, before its soak was over`);
  for (const fault of judgeEnd(rollout, hosts, { isAllGood, isByOperator, standings }))
    wrong.add(fault);
  return [...wrong];

  function isOpenAt(one: Rollout): boolean {
    return isOpen(one) || one.members.some(({ state }) => state === "going_back");
  }
}

type Between = (least: number, most: number) => number;

/** A host's own life. */
function run(host: Host, nowMs: number, between: Between): void {
  const { installing, kind } = host;
  const boot = (version: string): void => {
    host.version = version;
    host.boot++;
    host.bootedMs = nowMs;
  };
  if (installing !== null && nowMs >= installing.endsMs) {
    const { order } = installing;
    host.installing = null;
    if (order.version !== release) boot(order.version);
    else if (kind === "no-package") host.outcome = { id: order.id, state: "failed" };
    else if (kind === "crashes") host.outcome = { id: order.id, state: "returned" };
    else boot(release);
    if (kind === "dies" && host.version === release) {
      host.isAlive = false;
      host.revivesMs = nowMs + between(600, 1_800) * 1_000;
    }
  }
  if (!host.isAlive && nowMs >= host.revivesMs) {
    host.isAlive = true;
    boot(host.version);
  }
  if (kind === "restarts" && host.version === release && nowMs - host.bootedMs >= 10_000)
    boot(release);
}

function told(host: Host, nowMs: number): ReleaseStanding {
  const ranMs = nowMs - host.bootedMs;
  const requests = Math.floor(ranMs / 100);
  const isBad = host.version === release;
  const { heard, outcome } = host;
  const state = (): NonNullable<ReleaseStanding["order"]>["state"] => {
    if (host.installing !== null) return "installing";
    if (heard?.version === host.version) return "done";
    return outcome !== null && outcome.id === heard?.id ? outcome.state : "taken";
  };
  return {
    heardMs: nowMs,
    version: host.version,
    bootId: `boot-${host.boot}`,
    takes: host.kind === "held" || host.kind === "off" ? host.kind : "yes",
    isReady: ranMs >= 3_000,
    requests,
    errors: Math.floor(requests * (host.kind === "errs" && isBad ? 0.2 : 0.01)),
    warnings: host.kind === "warns" && isBad ? ["disk_low", "origin_down"] : ["disk_low"],
    order: heard === null ? null : { id: heard.id, state: state(), reason: "told by the host" },
  };
}

function obey(
  host: Host,
  order: ReleaseOrder,
  nowMs: number,
  plan: RolloutPlan,
  between: Between,
): void {
  host.ordersHeard++;
  if (order.version === host.version || host.installing !== null) return;
  if (host.outcome?.id === order.id) return;
  const isSlow = host.kind === "slow" && order.version === release;
  const lastsMs = isSlow ? plan.installMs + 20_000 : between(5, 30) * 1_000;
  host.installing = { order, endsMs: nowMs + lastsMs };
}

function judge(before: Rollout, rollout: Rollout, hosts: readonly Host[]): readonly string[] {
  const wrong: string[] = [];
  const inState = (...states: readonly string[]): number =>
    rollout.members.filter(({ state }) => states.includes(state)).length;
  const { canary, wavePercent } = rollout.plan;
  const given = inState("asked", "watched", "proven");
  if (given > canary && inState("proven") < canary)
    wrong.push(`${given} hosts were given the release before the canary proved itself`);
  const wave = Math.max(canary, Math.floor((hosts.length * wavePercent) / 100), 1);
  if (inState("asked", "watched") > wave) wrong.push("more hosts were asked than a wave has");
  const ending = before.state === "returning" || before.state === "returned";
  if (ending && rollout.members.some(({ state }) => state === "asked"))
    wrong.push("a host was asked while the release went back");
  const asked = rollout.members.filter(({ state }) => state === "asked");
  if (new Set(asked.map(({ siteId }) => siteId)).size < asked.length)
    wrong.push("two hosts of one site were asked at once");
  for (const { state, reason, key } of rollout.members)
    if (["stays", "missed", "stuck"].includes(state) && (reason ?? "") === "")
      wrong.push(`${key} is ${state} without a reason`);
  if (["paused", "returning", "returned"].includes(rollout.state) && (rollout.reason ?? "") === "")
    wrong.push(`the rollout is ${rollout.state} without a reason`);
  for (const host of hosts)
    if (never.has(host.kind) && host.ordersHeard > 0) wrong.push(`a ${host.kind} host was ordered`);
  return wrong;
}

function judgeEnd(
  rollout: Rollout,
  hosts: readonly Host[],
  {
    isAllGood,
    isByOperator,
    standings,
  }: {
    readonly isAllGood: boolean;
    readonly isByOperator: boolean;
    readonly standings: ReadonlyMap<string, ReleaseStanding>;
  },
): readonly string[] {
  const wrong: string[] = [];
  if (rollout.state === "running" || rollout.state === "returning")
    wrong.push(`the rollout did not end: ${rollout.state}`);
  if (isAllGood && rollout.state === "returned" && !isByOperator)
    wrong.push(`a good release went back: ${rollout.reason}`);
  for (const host of hosts) {
    const member = rollout.members.find(({ key }) => key === host.key);
    const standing = standings.get(host.key);
    if (member?.state === "back" && (host.version !== host.had || host.installing !== null))
      wrong.push(`${host.key} is told to be back, and is not: ${host.kind}`);
    if (rollout.state === "done" && member?.state === "proven" && host.version !== release)
      wrong.push(`${host.key} is told to have the release, and has ${standing?.version}`);
    if (rollout.state === "done" && member?.state === "proven" && bad.has(host.kind))
      wrong.push(`a host that ${host.kind} is told to be proven`);
    if (rollout.state === "returned" && host.version === release && member?.state !== "stuck")
      wrong.push(`${host.key} keeps the release, and is ${member?.state}`);
  }
  return wrong;
}

/** A small generator of numbers in [0, 1) with a seed. */
function mulberry(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
