// What the operator chose for records: what happens when there is no room, and what a power loss may cost.
//
//   drop_oldest   the oldest segment is dropped for new records
//   drop_newest   what is there stays; new records are dropped until there is room
//   sample        above 80 % of the room one record in 10 is kept, above 95 % one in 100, then the oldest
//                 segment is dropped
//   block         a request is served only with room for its record
//
//   group         records are synced before anybody is told that they are kept
//   relaxed       they are synced each second; those that a power loss takes are told as a crash

export type WhenFull = "drop_oldest" | "drop_newest" | "sample" | "block";
export type Durability = "group" | "relaxed";

/** The longest time whose records a power loss may take under `relaxed`. */
export const relaxedSyncMs = 1_000;

/** Returns n where one of n records is kept when this share of the room is in use. */
export function sampledOf(used: number): number {
  if (used > 0.95) return 100;
  return used > 0.8 ? 10 : 1;
}

/**
 * The number of gaps that central does not have yet after which the runs of a lane get twice as long, so
 * 4,096 gaps stand for more records than a disk holds.
 */
const gapsPerDoubling = 256;
const doublingsMax = 16;

export type SampleRun = { readonly count: number; readonly isKept: boolean };

/**
 * Chooses which records of a lane are kept: the first of every n. Once there are many gaps it keeps and
 * leaves out longer runs of records, for each gap must be remembered.
 */
export class Sampler {
  #keep = 0;
  #leave = 0;

  /** Splits a group of `count` records, in order, into runs that are kept or left out. */
  take(count: number, oneOf: number, gaps: number): readonly SampleRun[] {
    if (oneOf === 1) {
      this.#keep = this.#leave = 0;
      return [{ count, isKept: true }];
    }
    const runs: SampleRun[] = [];
    for (let left = count; left > 0;) {
      if (this.#keep + this.#leave === 0) {
        this.#keep = 2 ** Math.min(doublingsMax, Math.floor(gaps / gapsPerDoubling));
        this.#leave = this.#keep * (oneOf - 1);
      }
      const isKept = this.#keep > 0;
      const taken = Math.min(left, isKept ? this.#keep : this.#leave);
      if (isKept) this.#keep -= taken;
      else this.#leave -= taken;
      runs.push({ count: taken, isKept });
      left -= taken;
    }
    return runs;
  }
}

/** Returns `count` lines of `payload` from the offset `from`, each with its line feed. */
export function takeLines(payload: Uint8Array, from: number, count: number): Uint8Array {
  let end = from;
  for (let line = 0; line < count; line++) {
    const feed = payload.indexOf(lineFeed, end);
    end = feed < 0 ? payload.byteLength : feed + 1;
  }
  return payload.subarray(from, end);
}

const lineFeed = 0x0a;
