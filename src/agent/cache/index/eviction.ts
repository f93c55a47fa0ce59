// Makes room in steps: of the domain that holds the most, by what it has stored and what is on its way in, goes what was not used for longest, by a time of
// use that is coarse; then again of the one that holds the most by then, down to a little below where it began.

import { takeFromLargest, type RoomHolder } from "../../../core/fair-eviction.ts";
import type { IndexClock } from "./clock.ts";
import { isShort, shortBytes, usableBytes } from "./disk-room.ts";
import type { Entries, Removed } from "./entries.ts";
import type { Unused } from "./entry-sql.ts";
import type { SharedHeader } from "./shared-header.ts";

/** The share of what may be used that eviction frees: room for more than the one response that was too many. */
const evictedShare = 0.05;
/** Rows of one domain that are read at once, at first; then twice as many each time. */
const readFirst = { least: 2, most: 64 };
const readMost = 1_024;

export type EvictionOptions = {
  readonly entries: Entries;
  readonly header: SharedHeader;
  readonly diskMax: number;
  readonly clock: IndexClock;
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
    const { entries, header } = this.#options;
    const usable = this.#usable;
    const max = this.#isUnderWay ? usable * (1 - evictedShare) : usable;
    return entries.count > 0 && isShort(header, max);
  }

  /** Evicts while it is due. Returns what was removed: its bits are next, then its files. */
  step(): readonly Removed[] {
    const { entries, header, clock, commit } = this.#options;
    this.#isUnderWay = true;
    let removed: readonly Removed[] = [];
    this.#pace.run((countMax) => {
      const excess = shortBytes(header, this.#usable * (1 - evictedShare));
      const holders = this.#holders();
      const each = Math.ceil(countMax / holders.length);
      const unused = takeFromLargest(holders, { excess, countMax }, nextOf(entries, each));
      const ids = unused.map(({ id }) => id).toSorted((a, b) => a - b);
      const cause = { reason: "evicted", clearNo: null, atS: clock.nowS() } as const;
      removed = commit(() => entries.remove(ids, cause));
    });
    this.#isUnderWay = this.isDue;
    if (!this.#isUnderWay) this.settle();
    return removed;
  }

  /** Notes that there is room, also for what found none. */
  settle(): void {
    const { header } = this.#options;
    if (header.wantedBytes > 0) header.wantedBytes = 0;
  }

  get #usable(): number {
    const { header, diskMax } = this.#options;
    return usableBytes(header, diskMax);
  }

  #holders(): RoomHolder[] {
    const { entries, header } = this.#options;
    return Array.from(entries.byDomain(), ({ domain, bytes }) => {
      const inFlight = header.domains.inFlight(header.domains.placeOf(domain));
      return { name: domain, bytes: bytes + inFlight };
    });
  }
}

/**
 * Returns, for each domain, the longest unused entry, one after the other. `expected`: about so many of each
 * are wanted.
 */
function nextOf(entries: Entries, expected: number): (domain: string) => Unused | undefined {
  type Read = { rows: readonly Unused[]; at: number; limit: number };
  const first = Math.min(readFirst.most, Math.max(readFirst.least, expected));
  const read = new Map<string, Read>();
  return (domain) => {
    const before = read.get(domain) ?? { rows: [], at: 0, limit: first };
    const row = before.rows[before.at];
    if (row !== undefined) {
      before.at++;
      return row;
    }
    const { limit } = before;
    const rows = entries.longestUnused(domain, before.rows.at(-1), limit);
    read.set(domain, { rows, at: 1, limit: Math.min(2 * limit, readMost) });
    return rows[0];
  };
}

// How many rows a step of background work takes: as many as fit its time, measured by the step before.

type Pace = {
  /** The longest step: a fill may have to wait for it. */
  readonly stepMs: number;
  /** The fewest rows of a step, on a busy host too: smaller steps would take more of it. */
  readonly rowsMin: number;
  readonly rowsMax: number;
};

/** Few at first: what is evicted beyond what is needed is asked for again. */
const evictionPace: Pace = { stepMs: 15, rowsMin: 50, rowsMax: 4_000 };

class PacedSteps {
  readonly #elapsedMs: () => number;
  readonly #pace: Pace;
  #rows: number;

  constructor(elapsedMs: () => number, pace: Pace) {
    this.#elapsedMs = elapsedMs;
    this.#pace = pace;
    this.#rows = pace.rowsMin;
  }

  run(step: (rows: number) => void): void {
    const { stepMs, rowsMin, rowsMax } = this.#pace;
    const startedMs = this.#elapsedMs();
    step(this.#rows);
    const tookMs = Math.max(0.1, this.#elapsedMs() - startedMs);
    // Half the way at most: one slow disk access is no reason to crawl.
    const factor = Math.min(2, Math.max(0.5, stepMs / tookMs));
    this.#rows = Math.min(rowsMax, Math.max(rowsMin, Math.round(this.#rows * factor)));
  }
}
