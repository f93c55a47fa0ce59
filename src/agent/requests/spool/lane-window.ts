// How many numbers of a lane are reserved ahead: as many as come while the disk is slow, and no more, for
// after a crash nobody knows which of them stood for a record.
//
// A lane that nothing has come to has none, and one that rests has a few. What comes wakes it; the size of
// groups and the rate enlarge the window at once. It covers a stall of two seconds. When less comes, the worker gives
// back what it does not need (lane-writer.ts).

const stallS = 2;
/** A group holds what some 10 ms brought, so 32 groups are 320 ms. */
const groupsAhead = 32;
const groupMs = 10;
/** The numbers that a resting lane keeps, so that the first requests after a rest need not wait for the disk. */
export const windowAtRest = 16;
/**
 * The least window of a lane that is awake. A worker that is suddenly busy needs at least 10 ms for that many,
 * and the first of them enlarge the window.
 */
export const windowMin = 256;
export const windowMax = 65_536;
const rateSpanMs = 100;
/** The most numbers that a worker gives out during a slow sync, per ms. */
const busiestPerMs = 50;
export const slowWindowMax = 2_048;
/** The time for which one slow sync is remembered. */
const slowToldMs = 60_000;

export class LaneWindow {
  #size = 0;
  #groupMax = 0;
  #since = { seq: 0, atMs: 0 };

  get size(): number {
    return this.#size;
  }

  get isAwake(): boolean {
    return this.#size >= windowMin;
  }

  /** Widens the window, for something is about to come. */
  wake(): void {
    this.#size = bounded(this.#size);
  }

  /** Notes a group of `count` records that came within `overMs`: one that was kept back is no burst. */
  came(count: number, overMs: number): void {
    const group = Math.ceil((count * groupMs) / Math.max(groupMs, overMs));
    this.#groupMax = Math.max(this.#groupMax, group);
    this.#size = bounded(Math.max(this.#size, groupsAhead * this.#groupMax));
  }

  /** Notes that numbers through `seq` came, whether or not they stand for records that are kept. */
  received(seq: number, nowMs: number): void {
    this.#size = bounded(this.#size);
    const burst = groupsAhead * this.#groupMax;
    const spanMs = nowMs - this.#since.atMs;
    if (spanMs < rateSpanMs) return;
    const rate = ((seq - this.#since.seq) / spanMs) * 1_000;
    this.#size = bounded(Math.max(Math.ceil(rate * stallS), burst));
    this.#groupMax = 0;
    this.#since = { seq, atMs: nowMs };
  }

  /** Narrows the window to so many numbers, for nothing comes any more, or much less. */
  narrow(size: number): void {
    this.#size = Math.min(this.#size, size);
    this.#groupMax = 0;
  }
}

function bounded(size: number): number {
  return Math.min(windowMax, Math.max(windowMin, size));
}

/** How slow syncs were lately, and how many numbers must be reserved because of that. */
export class SlowSyncs {
  #worstMs = 0;
  #atMs = 0;

  took(ms: number, nowMs: number): void {
    if (ms < this.#worstMs && nowMs - this.#atMs < slowToldMs) return;
    this.#worstMs = ms;
    this.#atMs = nowMs;
  }

  /** Returns the least window of any lane. */
  windowLeast(): number {
    return Math.min(slowWindowMax, Math.max(windowMin, Math.ceil(this.#worstMs * busiestPerMs)));
  }
}
