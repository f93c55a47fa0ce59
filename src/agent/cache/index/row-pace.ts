// How fast deletion goes through its rows. A thread that computes for long holds the core that a visitor's worker wakes on for the slice that the scheduler gives
// it, some milliseconds; one that rests after each piece is in nobody's way for longer than a piece.
//
//   nobody visits   as fast as is promised; where the host is too busy for that there are no rests, and half a second that a checkpoint took is made up for
//   somebody does   a quarter as fast: what is being deleted is unservable already, and nobody waits for its room

import type { IndexClock } from "./clock.ts";

/** Above the 40,000 that are promised for a host that has time for them. */
const rowsPerMsAlone = 44;
const rowsPerMsBesideVisitors = 10;
const behindMsMax = 500;
/** What a piece itself takes. */
const behindMsBesideVisitors = 5;
/** Shorter ones are saved up: a timer is no more exact. */
const restMsMin = 0.1;
/** Whether there are visitors is looked at so often. */
const lookMs = 100;

export class RowPace {
  readonly #clock: Pick<IndexClock, "elapsedMs" | "rest">;
  readonly #lookups: () => number;
  #dueMs = 0;
  #seen = { lookups: 0, atMs: 0, isVisited: false };

  /** `lookups` moves with each visitor. */
  constructor(clock: Pick<IndexClock, "elapsedMs" | "rest">, lookups: () => number) {
    this.#clock = clock;
    this.#lookups = lookups;
  }

  /** As of the last look. */
  get isVisited(): boolean {
    return this.#seen.isVisited;
  }

  /** After a time without work nothing is behind. */
  begin(): void {
    this.#dueMs = this.#clock.elapsedMs();
    this.#seen = { lookups: this.#lookups(), atMs: this.#dueMs, isVisited: false };
  }

  /** So many rows are done: rests where they were not due yet. */
  did(rows: number): void {
    const { elapsedMs, rest } = this.#clock;
    const nowMs = elapsedMs();
    this.#look(nowMs);
    const { isVisited } = this;
    const rowsPerMs = isVisited ? rowsPerMsBesideVisitors : rowsPerMsAlone;
    const behindMs = isVisited ? behindMsBesideVisitors : behindMsMax;
    this.#dueMs = Math.max(this.#dueMs, nowMs - behindMs) + rows / rowsPerMs;
    const restMs = this.#dueMs - nowMs;
    if (restMs >= restMsMin) rest(restMs);
  }

  #look(nowMs: number): void {
    if (nowMs - this.#seen.atMs < lookMs) return;
    const lookups = this.#lookups();
    this.#seen = { lookups, atMs: nowMs, isVisited: lookups !== this.#seen.lookups };
  }
}
