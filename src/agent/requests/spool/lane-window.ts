// How many numbers of a lane are reserved ahead: as many as come while the disk is slow, no more. A crash tells all of them as lost.
//
// A lane that rests has few; what a group brings, and the rate, raise it at once. What two seconds bring may stall at most.

const stallS = 2;
/** A group is what some 5 ms brought: 32 of them are 160 ms. */
const groupsAhead = 32;
/**
 * The window of a resting lane: a worker that is suddenly busy needs 10 ms or more for so many, and the first
 * of them let the window grow.
 */
export const windowMin = 256;
export const windowMax = 65_536;
const rateSpanMs = 100;
/** Numbers that a worker may give out in the time of a slow sync, per ms. */
const busiestPerMs = 50;
const slowWindowMax = 2_048;
/** The time for which one slow sync is remembered. */
const slowToldMs = 60_000;

export class LaneWindow {
  #size = windowMin;
  #groupMax = 0;
  #since = { seq: 0, atMs: 0 };

  get size(): number {
    return this.#size;
  }

  /** Numbers through `seq` came, the last `count` of them now. */
  received(seq: number, count: number, nowMs: number): void {
    this.#groupMax = Math.max(this.#groupMax, count);
    const burst = groupsAhead * this.#groupMax;
    this.#size = bounded(Math.max(this.#size, burst));
    const spanMs = nowMs - this.#since.atMs;
    if (spanMs < rateSpanMs) return;
    const rate = ((seq - this.#since.seq) / spanMs) * 1_000;
    this.#size = bounded(Math.max(Math.ceil(rate * stallS), burst));
    this.#groupMax = 0;
    this.#since = { seq, atMs: nowMs };
  }

  /** Narrows the window: nothing comes any more. */
  rest(): void {
    this.#size = windowMin;
    this.#groupMax = 0;
  }
}

function bounded(size: number): number {
  return Math.min(windowMax, Math.max(windowMin, size));
}

/** How slow syncs were of late, in numbers that have to be reserved because of it. */
export class SlowSyncs {
  #worstMs = 0;
  #atMs = 0;

  took(ms: number, nowMs: number): void {
    if (ms < this.#worstMs && nowMs - this.#atMs < slowToldMs) return;
    this.#worstMs = ms;
    this.#atMs = nowMs;
  }

  /** No lane has fewer reserved. */
  windowLeast(): number {
    return Math.min(slowWindowMax, Math.max(windowMin, Math.ceil(this.#worstMs * busiestPerMs)));
  }
}
