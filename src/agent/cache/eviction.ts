// Makes room in steps: what was not used for longest goes, by a time of use that is coarse, down to a little below where it began.

import type { Clock } from "./clock.ts";
import { isShort } from "./disk-room.ts";
import type { Entries, Removed } from "./entries.ts";
import { evictionPace, PacedSteps } from "./paced-steps.ts";
import type { SharedHeader } from "./shared-header.ts";

/** Room for more than the one response that was too many. */
const evictedShare = 0.05;

export type EvictionOptions = {
  readonly entries: Entries;
  readonly header: SharedHeader;
  readonly diskMax: number;
  readonly clock: Clock;
  /** Runs in one transaction; throws as SQLite does, then nothing of it happened. */
  readonly commit: <T>(action: () => T) => T;
};

export class Eviction {
  readonly #options: EvictionOptions;
  readonly #pace: PacedSteps;
  #isUnderWay = false;

  constructor(options: EvictionOptions) {
    this.#options = options;
    this.#pace = new PacedSteps(options.clock.elapsedMs, evictionPace);
  }

  get isDue(): boolean {
    const { entries, header, diskMax } = this.#options;
    const max = this.#isUnderWay ? diskMax * (1 - evictedShare) : diskMax;
    return entries.count > 0 && isShort(header, max);
  }

  /** While it is due. What was removed: its bits are next, then its files. */
  step(): readonly Removed[] {
    const { entries, clock, commit } = this.#options;
    this.#isUnderWay = true;
    let removed: readonly Removed[] = [];
    this.#pace.run((rows) => {
      removed = commit(() =>
        entries.remove(entries.longestUnused(rows), {
          reason: "evicted",
          clearNo: null,
          atS: clock.nowS(),
        }),
      );
    });
    this.#isUnderWay = this.isDue;
    return removed;
  }
}
