// The upgrades that are open in a worker. Their number is bounded; once a second each is looked at, and ended if nothing passes any more, or if a later state
// has turned against its visitor.

import type { WorkerClock } from "../clock.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import type { Joint, UpgradeEnd } from "./joint.ts";

export type UpgradeLimits = {
  /** The most upgrades of one worker, those that the origin has not answered yet included. */
  readonly openMax: number;
  /** An upgrade over which nothing passed for this long is ended. */
  readonly idleMs: number;
};

export type OpenUpgradesDeps = {
  readonly limits: UpgradeLimits;
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
  /** The version of the state in force. */
  readonly version: () => number;
  /** Milliseconds between two looks; a second unless told. */
  readonly lookMs?: number | undefined;
};

export type OpenUpgrade = {
  readonly joint: Joint;
  /** The main domain. */
  readonly domain: string;
  /** Judges the visitor by the state in force. */
  readonly isWelcome: () => boolean;
};

type Held = OpenUpgrade & { judgedBy: number };

const lookMsDefault = 1_000;

export class OpenUpgrades implements Disposable {
  readonly #deps: OpenUpgradesDeps;
  readonly #held = new Set<Held>();
  readonly #look: NodeJS.Timeout;
  #places = 0;

  constructor(deps: OpenUpgradesDeps) {
    this.#deps = deps;
    this.#look = setInterval(() => this.#lookAtAll(), deps.lookMs ?? lookMsDefault).unref();
  }

  /** Takes a place, to be given back by `leave`; false if all are taken. */
  enter(): boolean {
    if (this.#places >= this.#deps.limits.openMax) return false;
    this.#places++;
    return true;
  }

  leave(): void {
    this.#places--;
  }

  /** `judgedBy`: the version of the state by which its visitor was let in. Its place is given back at its end. */
  opened(upgrade: OpenUpgrade, judgedBy: number): (end: UpgradeEnd) => void {
    const { metrics } = this.#deps;
    const { joint, domain } = upgrade;
    const held = { ...upgrade, judgedBy };
    this.#held.add(held);
    metrics.accel_agent_open_upgrades.inc();
    return (end) => {
      this.#held.delete(held);
      this.leave();
      metrics.accel_agent_open_upgrades.dec();
      metrics.accel_agent_upgrades_ended_total.inc({ domain, reason: end });
      const bytes = metrics.accel_agent_upgrade_bytes_total;
      bytes.inc({ domain, from: "visitor" }, joint.fromVisitorBytes);
      bytes.inc({ domain, from: "origin" }, joint.fromOriginBytes);
    };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#look);
  }

  #lookAtAll(): void {
    if (this.#held.size === 0) return;
    const { clock, limits, version } = this.#deps;
    const before = clock.steadyMs() - limits.idleMs;
    const inForce = version();
    for (const held of this.#held) {
      const isKnown = held.judgedBy === inForce;
      held.judgedBy = inForce;
      if (!isKnown && !held.isWelcome()) held.joint.part("unwelcome");
      else if (held.joint.lastMs < before) held.joint.part("idle");
    }
  }
}
