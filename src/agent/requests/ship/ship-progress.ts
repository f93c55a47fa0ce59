// Whether shipping makes progress, and what central said last about each lane. Only a commit counts as
// progress. A peer that takes connections and never answers, one that answers nonsense and one that is away
// are treated alike, and operators are told the same.

import type { Health } from "../../../base/health.ts";
import type { Log } from "../../../base/log.ts";
import type { SpoolFacts } from "../spool/spool-messages.ts";

/** The time with a backlog and without a commit after which operators are warned. */
export const stuckAfterMs = 60_000;

const troubles: ReadonlySet<string> = new Set(["wait", "unanswered"]);

export type LaneAnswer = {
  /**
   * What was done about the last batch, in a word: committed, conflict, halve, poison, recode, wait,
   * unanswered.
   */
  readonly outcome: string;
  /** Central's message if the answer is no commit. */
  readonly why: string | undefined;
  readonly at: string;
};

/** `retrying`: central did not take the last batch; `stuck`: it has taken none for a minute. */
export type ShipState = "idle" | "moving" | "retrying" | "stuck";

export type ShipProgressOptions = {
  readonly health: Health;
  readonly log: Log;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
};

export class ShipProgress {
  readonly #options: ShipProgressOptions;
  readonly #answers = new Map<string, LaneAnswer>();
  /** Since when there has been a backlog without a commit. */
  #stillSinceMs: number | undefined;
  #hasBacklog = false;
  #isStuck = false;
  #why: string | undefined;

  constructor(options: ShipProgressOptions) {
    this.#options = options;
  }

  /** Notes that central committed a batch, or that there is no backlog. */
  moved(): void {
    this.#stillSinceMs = undefined;
    if (this.#why === undefined && !this.#isStuck) return;
    this.#why = undefined;
    this.#isStuck = false;
    this.#options.health.settle("logs_not_shipped");
    this.#options.log.info("request records are delivered again");
  }

  /** Notes the outcome of a batch of the lane. */
  answered(lane: string, outcome: string, why?: string): void {
    const { log, now, monotonicMs } = this.#options;
    this.#answers.set(lane, { outcome, why, at: now().toISOString() });
    if (why === undefined || !troubles.has(outcome)) return;
    if (this.#why === undefined)
      log.warn({ lane, why }, "request records cannot be delivered; they are kept");
    this.#why = why;
    this.#stillSinceMs ??= monotonicMs();
  }

  answer(lane: string): LaneAnswer | undefined {
    return this.#answers.get(lane);
  }

  get state(): ShipState {
    if (this.#isStuck) return "stuck";
    if (!this.#hasBacklog) return "idle";
    return this.#why === undefined ? "moving" : "retrying";
  }

  /** Checks the progress; called every second or so. */
  check(facts: SpoolFacts): void {
    const there = new Set(facts.lanes.map(({ lane }) => lane));
    for (const lane of this.#answers.keys()) if (!there.has(lane)) this.#answers.delete(lane);
    this.#hasBacklog = facts.lanes.some(({ mark, durable }) => mark < durable);
    if (!this.#hasBacklog) {
      this.moved();
      return;
    }
    const nowMs = this.#options.monotonicMs();
    this.#stillSinceMs ??= nowMs;
    if (nowMs - this.#stillSinceMs < stuckAfterMs) return;
    this.#isStuck = true;
    const text = `request records are kept here because central does not take them: ${this.#why ?? "no answer so far"}`;
    this.#options.health.raise(
      "logs_not_shipped",
      "warning",
      text,
      "Check the connection to central, and central's health.",
    );
  }
}
