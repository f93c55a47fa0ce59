// What an agent does about an order, as a pure decision: the host's installer is asked by a file and answers by a file, and the agent itself is restarted in between.
//
// The installer says `installing` before it looks at the file for the last time. The agent removes an order that is not wanted any more, and then reads what the
// installer said. So one of the two sees the other, and once the agent says `done`, or that it gave an order up, nothing is installed by that order any more.

import type { OrderState, ReleaseOrder, ReleaseStanding } from "./rollout.ts";

/** What the host's installer wrote last. */
export type InstallerOutcome = {
  readonly id: string;
  readonly state: OrderState;
  readonly reason: string;
  readonly writtenMs: number;
};

export type HeedingHost = {
  readonly version: string;
  readonly takes: ReleaseStanding["takes"];
  /** The id of the order that lies in the installer's file; undefined: there is none. An order of which nothing can be read has an empty id. */
  readonly lying: string | undefined;
  /** Read after the file of the order. */
  readonly outcome: InstallerOutcome | undefined;
  /** When this start of the agent asked the installer for the order first and last; undefined: not yet. */
  readonly asked: { readonly firstMs: number; readonly lastMs: number } | undefined;
  readonly nowMs: number;
};

/**
 * `withdraw`: remove the order that lies in the file, look at the host again, and decide again. `ask`: write the order for the installer, which may have missed it,
 * and tell that it is taken. `tell`: nothing is to be done but to say what became of it.
 */
export type Heeding =
  | { readonly step: "withdraw" }
  | { readonly step: "ask" }
  | { readonly step: "tell"; readonly state: OrderState; readonly reason: string };

/** Longer than the installer may run: after it a word of the installer is of one that was cut off. */
const installingMsMax = 35 * 60_000;
const askAgainMs = 30_000;
const unheardMsMax = 5 * 60_000;

/** Decides about the order that central wants carried out; null: it wants none. Only an order that is still to be carried out may lie in the file. */
export function heedOrder(order: ReleaseOrder | null, host: HeedingHost): Heeding {
  const { lying } = host;
  if (order === null)
    return lying === undefined ? { step: "tell", ...nothing } : { step: "withdraw" };
  const heeding = heedWanted(order, host);
  if (lying === undefined || heeding.step === "ask") return heeding;
  const isUnderWay = heeding.step === "tell" && isOpen(heeding.state);
  return isUnderWay && lying === order.id ? heeding : { step: "withdraw" };
}

const nothing = { state: "done", reason: "" } as const;

const isOpen = (state: OrderState): boolean => state === "taken" || state === "installing";

function heedWanted(order: ReleaseOrder, host: HeedingHost): Heeding {
  const { outcome, nowMs } = host;
  const isInstalling =
    outcome?.state === "installing" && nowMs - outcome.writtenMs < installingMsMax;
  if (isInstalling && outcome.id !== order.id)
    return tell("taken", "another version is being installed");
  if (host.version === order.version) return tell("done");
  if (isInstalling) return tell("installing");
  if (outcome?.id === order.id && outcome.state !== "installing")
    return outcome.state === "done"
      ? tell("failed", `installed, and the agent that runs is ${host.version}`)
      : tell(outcome.state, outcome.reason);
  if (host.takes !== "yes") return tell("refused", refusalOf[host.takes]);
  if (host.asked === undefined) return { step: "ask" };
  if (nowMs - host.asked.firstMs > unheardMsMax) return tell("failed", unheard);
  return nowMs - host.asked.lastMs >= askAgainMs ? { step: "ask" } : tell("taken");
}

function tell(state: OrderState, reason = ""): Heeding {
  return { step: "tell", state, reason };
}

const refusalOf = {
  held: "pinned: its packages are held",
  off: "this host does not let central install releases",
} as const;

const unheard =
  "accel-agent-rollout.path did not take the order: look at systemctl status accel-agent-rollout.path accel-agent-rollout.service";
