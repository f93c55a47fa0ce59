// One host of a rollout in small steps: the agent that hears what is wanted, the installer of the host, and central that takes the release back, in any order.

import {
  heedOrder,
  type HeedingHost,
  type InstallerOutcome,
} from "../../src/core/rollout/order-heeding.ts";
import { rolloutDefaults } from "../../src/core/rollout/rollout-plan.ts";
import {
  orderOf,
  type OrderState,
  type ReleaseOrder,
  type ReleaseStanding,
  type Rollout,
} from "../../src/core/rollout/rollout.ts";
import { goBack, stepRollout } from "../../src/core/rollout/rollout-step.ts";

/** Who takes the next step. `by-hand`: somebody starts the installer's unit. */
export type Turn = "agent" | "installer" | "central" | "give-up" | "by-hand" | "restart";
export const turns: readonly Turn[] = [
  "agent",
  "agent",
  "agent",
  "installer",
  "installer",
  "central",
  "give-up",
  "by-hand",
  "restart",
];

export type HostModelOptions = {
  readonly turns: readonly Turn[];
  readonly heed?: typeof heedOrder;
  /** Whether the installer looks at the order once more before it installs. */
  readonly looksAgain?: boolean;
  /** Whether the release starts on this host. */
  readonly starts?: boolean;
};

const had = "1.0.0";
const release = "2.0.0";
/** More than any way of it takes: the turns that follow upon the given ones, so that all comes to its end. */
const roundsAtTheEnd = 200;

/** Takes the turns, gives the release up, and lets everybody finish. Returns what was wrong; nothing if all was right. */
export function runHostModel({
  turns: given,
  heed = heedOrder,
  looksAgain = true,
  starts = true,
}: HostModelOptions): readonly string[] {
  const wrong = new Set<string>();
  let nowMs = 0;
  let file: ReleaseOrder | undefined;
  let outcome: InstallerOutcome | undefined;
  let running = had;
  let standing: ReleaseStanding | undefined;
  let rollout = asked();
  let isTriggered = false;
  let installer: Generator<undefined, void> | undefined;
  let agent = agentSteps();

  for (const turn of given) take(turn);
  take("give-up");
  for (let round = 0; round < roundsAtTheEnd; round++)
    for (const turn of ["agent", "installer", "central"] as const) take(turn);
  const [member] = rollout.members;
  if (member?.state !== "back") wrong.add(`the host is ${member?.state} in the end`);
  if (file !== undefined) wrong.add(`${file.id} lies there in the end`);
  if (running !== had) wrong.add(`${running} runs in the end`);
  return [...wrong];

  function take(turn: Turn): void {
    nowMs += 1_000;
    if (turn === "agent") agent.next();
    else if (turn === "restart") agent = agentSteps();
    else if (turn === "give-up") {
      if (rollout.state === "running") rollout = goBack(rollout, "by the operator", nowMs);
    } else if (turn === "central")
      rollout = stepRollout(rollout, () => standing, { nowMs, upSinceMs: 0 });
    else {
      if (turn === "by-hand") isTriggered = true;
      if (installer === undefined && isTriggered) {
        isTriggered = false;
        installer = installerSteps();
      }
      if (installer?.next().done === true) installer = undefined;
    }
    const isBack = rollout.members.some(({ state }) => state === "back");
    if (isBack && rollout.state === "returned" && running !== had)
      wrong.add(`${running} runs on a host that is told to be back`);
  }

  /** As `ReleaseAsking` does it. */
  function* agentSteps(): Generator<undefined, void> {
    const version = running;
    let order: ReleaseOrder | null | undefined;
    let first: { readonly id: string; readonly firstMs: number; lastMs: number } | undefined;
    for (;;) {
      let told: ReleaseStanding["order"] = null;
      if (order !== undefined) {
        const own = first?.id === order?.id ? first : undefined;
        let heeding = heed(order, yield* look(version, own));
        if (heeding.step === "withdraw") {
          yield;
          file = undefined;
          yield;
          heeding = heed(order, yield* look(version, own));
        }
        if (heeding.step === "ask" && order !== null) {
          yield;
          file = order;
          isTriggered = true;
          first = { id: order.id, firstMs: own?.firstMs ?? nowMs, lastMs: nowMs };
        }
        const said = heeding.step === "tell" ? heeding : { state: "taken" as const, reason: "" };
        if (order !== null) told = { id: order.id, state: said.state, reason: said.reason };
      }
      yield;
      standing = heard(version, told, nowMs);
      const [member] = rollout.members;
      order = (member === undefined ? undefined : orderOf(rollout, member)) ?? null;
      yield;
    }
  }

  function* look(
    version: string,
    own: HeedingHost["asked"],
  ): Generator<undefined, HeedingHost, undefined> {
    const lying = file?.id;
    yield;
    return { version, takes: "yes", lying, outcome, asked: own, nowMs };
  }

  /** As `install-release` does it. */
  function* installerSteps(): Generator<undefined, void> {
    const order = file;
    if (order === undefined) return;
    const tell = (state: OrderState): void => {
      outcome = { id: order.id, state, reason: "because", writtenMs: nowMs };
    };
    yield;
    if (running === order.version) {
      tell("done");
      return;
    }
    const before = running;
    yield;
    tell("installing");
    yield; // The repository is asked.
    if (looksAgain && file?.id !== order.id) {
      tell("refused");
      return;
    }
    yield;
    const isBad = order.version === release && !starts;
    if (!isBad) {
      running = order.version;
      agent = agentSteps();
    }
    yield; // Whether it stays up.
    if (isBad) {
      running = before;
      agent = agentSteps();
    }
    yield;
    tell(isBad ? "returned" : "done");
  }
}

/** A rollout that asked its only host. */
function asked(): Rollout {
  return {
    token: "t",
    release,
    plan: rolloutDefaults,
    state: "running",
    reason: null,
    budget: 1,
    missesSeen: 0,
    startedMs: 0,
    members: [
      {
        key: "1/a",
        siteId: 1,
        state: "asked",
        reason: null,
        had,
        sinceMs: 0,
        before: { requests: 0, errors: 0, warnings: [] },
        bootId: null,
        restarts: 0,
        uneasySinceMs: null,
      },
    ],
  };
}

const heard = (
  version: string,
  order: ReleaseStanding["order"],
  heardMs: number,
): ReleaseStanding => ({
  heardMs,
  version,
  bootId: version,
  takes: "yes",
  isReady: true,
  requests: 0,
  errors: 0,
  warnings: [],
  order,
});
