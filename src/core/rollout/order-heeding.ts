// What an agent does about an order, as a pure decision: the host's installer is asked by a file and answers by a file, and the agent itself is restarted in between.

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
  readonly outcome: InstallerOutcome | undefined;
  /** When this start of the agent asked the installer for the order first and last; undefined: not yet. */
  readonly asked: { readonly firstMs: number; readonly lastMs: number } | undefined;
  readonly nowMs: number;
};

export type Heeding = {
  readonly state: OrderState;
  readonly reason: string;
  /** Whether to write the order for the installer, which may have missed it. */
  readonly write: boolean;
};

/** Longer than the installer may run: after it a word of the installer is of one that was cut off. */
const installingMsMax = 35 * 60_000;
const askAgainMs = 30_000;
const unheardMsMax = 5 * 60_000;

export function heedOrder(order: ReleaseOrder, host: HeedingHost): Heeding {
  const { outcome, nowMs } = host;
  const isInstalling =
    outcome?.state === "installing" && nowMs - outcome.writtenMs < installingMsMax;
  if (isInstalling && outcome.id !== order.id)
    return { state: "taken", reason: "another version is being installed", write: false };
  if (host.version === order.version) return { state: "done", reason: "", write: false };
  if (isInstalling) return { state: "installing", reason: "", write: false };
  if (outcome?.id === order.id && outcome.state !== "installing")
    return outcome.state === "done"
      ? {
          state: "failed",
          reason: `installed, and the agent that runs is ${host.version}`,
          write: false,
        }
      : { state: outcome.state, reason: outcome.reason, write: false };
  if (host.takes !== "yes")
    return { state: "refused", reason: refusalOf[host.takes], write: false };
  if (host.asked !== undefined && nowMs - host.asked.firstMs > unheardMsMax)
    return { state: "failed", reason: unheard, write: false };
  const write = host.asked === undefined || nowMs - host.asked.lastMs >= askAgainMs;
  return { state: "taken", reason: "", write };
}

const refusalOf = {
  held: "pinned: its packages are held",
  off: "this host does not let central install releases",
} as const;

const unheard =
  "accel-agent-rollout.path did not take the order: look at systemctl status accel-agent-rollout.path accel-agent-rollout.service";
