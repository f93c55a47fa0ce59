// How fast deletion goes through its rows: as fast as it has to be, and no faster. A thread that computes for long holds the core that a visitor's worker
// wakes on for the slice that the scheduler gives it, some milliseconds; one that rests after each piece is in nobody's way for longer than a piece.
//
// Where the host is too busy for the rate there are no rests, and half a second that a checkpoint took is made up for.

import type { Clock } from "./clock.ts";

/** Above the 40,000 that are promised for a host that has time for them. */
const rowsPerMs = 41;
const behindMsMax = 500;
/** Shorter ones are saved up: a timer is no more exact. */
const restMsMin = 0.1;

export class RowPace {
  readonly #clock: Pick<Clock, "elapsedMs" | "rest">;
  #dueMs = 0;

  constructor(clock: Pick<Clock, "elapsedMs" | "rest">) {
    this.#clock = clock;
  }

  /** After a time without work nothing is behind. */
  begin(): void {
    this.#dueMs = this.#clock.elapsedMs();
  }

  /** So many rows are done: rests where they were not due yet. */
  did(rows: number): void {
    const { elapsedMs, rest } = this.#clock;
    const nowMs = elapsedMs();
    this.#dueMs = Math.max(this.#dueMs, nowMs - behindMsMax) + rows / rowsPerMs;
    const restMs = this.#dueMs - nowMs;
    if (restMs >= restMsMin) rest(restMs);
  }
}
