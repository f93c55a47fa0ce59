// How long the shipper waits after a batch that central did not take.

import { sleep } from "../../../base/wait.ts";
import { backoffMs, linkBackoff, type Backoff } from "../../../core/backoff.ts";

/** While requests wait for room (`spool.when_full: block`) visitors are refused: none is longer than it takes central to come back. */
export const blockingBackoff: Backoff = { firstMs: 100, mostMs: 5_000 };
/** A wait that is long already becomes short so soon after requests begin to wait. */
const lookMs = 500;

export type ShipPause = {
  /** In a row; 1 or more. */
  readonly failures: number;
  /** As central wants it, in `Retry-After`. */
  readonly leastMs: number;
  /** In [0, 1). */
  readonly random: number;
  readonly isBlocking: () => boolean;
  readonly stop: AbortSignal;
};

/** Resolves when it is time to try again, or with the signal. */
export async function shipPause(pause: ShipPause): Promise<void> {
  const { failures, leastMs, random, isBlocking, stop } = pause;
  const began = performance.now();
  for (;;) {
    const backoff = isBlocking() ? blockingBackoff : linkBackoff;
    const wholeMs = leastMs + backoffMs(failures - 1, random, backoff);
    const leftMs = Math.ceil(wholeMs - (performance.now() - began));
    if (leftMs <= 0 || !(await sleep(Math.min(leftMs, lookMs), stop))) return;
  }
}
