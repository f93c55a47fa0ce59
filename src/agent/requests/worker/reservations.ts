// How far a worker may number: numbers are reserved ahead on disk, so that after a crash it is known how many
// were lost at most. The limit is published in the worker's lane words.
//
// Where requests wait for room (`block`), numbers are bound to the room: none is given out beyond what the
// spool has room for, and none while the disk fails. As room shrinks, the worker is told a lower end than is
// reserved; it looks before each request that it lets in.

import { SlowSyncs } from "../spool/lane-window.ts";
import type { Lane } from "../spool/lane.ts";

export class Reservations {
  readonly #outstandingMax: () => number | undefined;
  readonly #slowSyncs = new SlowSyncs();

  /**
   * `outstandingMax` returns how many numbers each lane may have reserved beyond its end; undefined for any
   * number.
   */
  constructor(outstandingMax: () => number | undefined) {
    this.#outstandingMax = outstandingMax;
  }

  get areBound(): boolean {
    return this.#outstandingMax() !== undefined;
  }

  synced(tookMs: number, nowMs: number): void {
    this.#slowSyncs.took(tookMs, nowMs);
  }

  /** Returns the number through which more must be reserved now; undefined while enough is. */
  dueTo(lane: Lane): number | undefined {
    if (lane.words === undefined || this.#lowOf(lane) <= lane.reserved) return undefined;
    const to = lane.end + this.ahead(lane);
    return to > lane.reserved ? to : undefined;
  }

  /** Returns how many numbers beyond the lane's end are to be reserved. */
  ahead(lane: Lane): number {
    const most = this.#outstandingMax();
    if (most !== undefined && lane.pause !== undefined) return 0;
    return Math.min(this.#wanted(lane), most ?? Infinity);
  }

  /** Whether the worker may soon number no further, and a sync would help. */
  isShort(lane: Lane): boolean {
    return this.#lowOf(lane) > lane.granted && this.dueTo(lane) !== undefined;
  }

  publish(lane: Lane): void {
    const { words, base, pause } = lane;
    if (words === undefined) return;
    const most = this.#outstandingMax() ?? Infinity;
    const isPaused = this.areBound && pause !== undefined;
    words.durable = base + lane.durable;
    words.reserved = base + Math.min(lane.granted, lane.end + (isPaused ? 0 : most));
  }

  /** Returns the number through which numbers must be reserved; when fewer are, more are reserved. */
  #lowOf(lane: Lane): number {
    return lane.end + Math.floor((this.#wanted(lane) * 3) / 4);
  }

  #wanted(lane: Lane): number {
    const { size, isAwake } = lane.window;
    return isAwake ? Math.max(size, this.#slowSyncs.windowLeast()) : size;
  }
}
