// Says to central again and again which release runs and how that goes, and obeys what central wants. A central that is older is asked now and then.

import { codeOf, messageOf } from "../../core/faults.ts";
import { heedOrder, type HeedingHost } from "../../core/rollout/order-heeding.ts";
import type { ReleaseOrder } from "../../core/rollout/rollout.ts";
import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";
import {
  toldReasonMax,
  toldWarningsMax,
  type ReleaseTold,
  type ReleaseWanted,
} from "../../wire/rollout.ts";
import type { HostInstaller } from "./host-installer.ts";

/** How the agent is doing; counts are since its start. */
export type ReleaseFacts = Pick<ReleaseTold, "ready" | "requests" | "errors" | "warnings">;

export type ReleaseAskingOptions = {
  readonly instanceId: string;
  readonly bootId: string;
  readonly version: string;
  readonly facts: () => Promise<ReleaseFacts>;
  readonly installer: Pick<HostInstaller, "takes" | "lying" | "outcome" | "ask" | "withdraw">;
  /** Throws NOT_FOUND where central does not know rollouts. */
  readonly tell: (told: ReleaseTold, signal: AbortSignal) => Promise<ReleaseWanted>;
  readonly now: () => Date;
  readonly random: () => number;
  readonly log: Log;
  readonly stop: AbortSignal;
  readonly timings?: Partial<typeof releaseTimings>;
};

/** Milliseconds. `least` and `most` bound what central says. */
export const releaseTimings = {
  first: 2_000,
  failed: 10_000,
  unknown: 300_000,
  least: 1_000,
  most: 600_000,
};

export class ReleaseAsking implements AsyncDisposable {
  readonly #options: ReleaseAskingOptions;
  readonly #timings: typeof releaseTimings;
  readonly #own = new AbortController();
  readonly #stop: AbortSignal;
  readonly #running: Promise<void>;
  /** What central wanted last; undefined: it has not been heard since the start. */
  #order: ReleaseOrder | null | undefined;
  #asked: (NonNullable<HeedingHost["asked"]> & { readonly id: string }) | undefined;

  constructor(options: ReleaseAskingOptions) {
    this.#options = options;
    this.#timings = { ...releaseTimings, ...options.timings };
    this.#stop = AbortSignal.any([options.stop, this.#own.signal]);
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { random } = this.#options;
    let waitMs = this.#timings.first * random();
    while (await sleep(waitMs, this.#stop)) {
      const nextMs = await this.#once();
      waitMs = nextMs * (0.9 + 0.2 * random());
    }
  }

  /** Tells and obeys once. Returns when to do it again. Never rejects. */
  async #once(): Promise<number> {
    const { tell, log } = this.#options;
    const { failed, unknown, least, most } = this.#timings;
    try {
      const wanted = await tell(await this.#told(), this.#stop);
      const isNew = wanted.order !== null && wanted.order.id !== this.#order?.id;
      if (isNew) log.info({ order: wanted.order }, "central wants another release on this host");
      this.#order = wanted.order;
      if (isNew) return least; // What comes of it is told soon.
      if (wanted.order === null) await this.#heed(); // What was wanted is not to lie there until the next time.
      return Math.min(most, Math.max(least, wanted.ask_again_ms));
    } catch (error) {
      if (codeOf(error) === "NOT_FOUND") return unknown;
      // Whether central can be reached is the link's to warn of.
      if (!this.#stop.aborted)
        log.debug({ code: codeOf(error) }, `the release was not told: ${messageOf(error)}`);
      return failed;
    }
  }

  async #told(): Promise<ReleaseTold> {
    const { instanceId, bootId, version, installer, facts } = this.#options;
    const { warnings, ...doing } = await facts();
    return {
      instance_id: instanceId,
      boot_id: bootId,
      version,
      takes: installer.takes(),
      ...doing,
      warnings: warnings.slice(0, toldWarningsMax),
      order: await this.#heed(),
    };
  }

  /** Does what is to be done about the order, and returns what came of it until now; null: there is none. Never rejects. */
  async #heed(): Promise<ReleaseTold["order"]> {
    const order = this.#order;
    if (order === undefined) return null;
    try {
      const { state, reason } = await this.#decided(order);
      return order === null
        ? null
        : { id: order.id, state, reason: reason.slice(0, toldReasonMax) };
    } catch (error) {
      const reason = `the file of the order cannot be changed: ${messageOf(error)}`;
      this.#options.log.warn({ order, code: codeOf(error) }, reason);
      if (order === null) return null;
      return { id: order.id, state: "taken", reason: reason.slice(0, toldReasonMax) };
    }
  }

  /** Throws what the file system says. */
  async #decided(order: ReleaseOrder | null): Promise<Told> {
    const { installer, version, now, log } = this.#options;
    const nowMs = now().getTime();
    const asked = this.#asked?.id === order?.id ? this.#asked : undefined;
    const look = (): HeedingHost => {
      const lying = installer.lying(); // Before the outcome: see `heedOrder`.
      return {
        version,
        takes: installer.takes(),
        lying,
        outcome: installer.outcome(),
        asked,
        nowMs,
      };
    };
    let heeding = heedOrder(order, look());
    if (heeding.step === "withdraw") {
      log.info({ lying: installer.lying(), order }, "the installer's order is taken back");
      await installer.withdraw();
      heeding = heedOrder(order, look());
    }
    if (heeding.step === "tell") return heeding;
    if (heeding.step === "withdraw" || order === null) return { state: "taken", reason: lies };
    await installer.ask(order);
    this.#asked = { id: order.id, firstMs: asked?.firstMs ?? nowMs, lastMs: nowMs };
    return { state: "taken", reason: "" };
  }
}

type Told = Pick<NonNullable<ReleaseTold["order"]>, "state" | "reason">;

/** Somebody else writes the file. */
const lies = "another order lies in the installer's file, though it was removed";
