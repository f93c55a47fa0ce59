// Shared memory of the tables of files, written again when nobody reads it any more. What no thread refers to any longer is hardly ever collected: a table
// for each of 60 activations of 10,000 files had grown the agent by the 2.5 MB of each.
//
// Invariant: what was given back is at rest before it is written again, for a request that began before may still look something up. One that does so
// later yet is told by the table itself (core/serving/manifest-table.ts).

/** Requests look files up when they begin; what they send afterwards needs no table. */
const restMs = 10_000;
/** The most bytes that lie idle; the oldest goes first. */
const idleBytesMax = 64 * 2 ** 20;

type Idle = { readonly table: SharedArrayBuffer; readonly sinceMs: number };

export class TableMemory {
  readonly #nowMs: () => number;
  /** Oldest first. */
  #idle: readonly Idle[] = [];

  /** Monotonic. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns a buffer of at least so many bytes; it holds whatever was in it. */
  take(bytes: number): SharedArrayBuffer {
    const rested = this.#nowMs() - restMs;
    const best = this.#idle
      .filter(({ table, sinceMs }) => sinceMs <= rested && fits(table, bytes))
      .reduce<Idle | undefined>(
        (least, one) =>
          least === undefined || one.table.byteLength < least.table.byteLength ? one : least,
        undefined,
      );
    if (best === undefined) return new SharedArrayBuffer(roomFor(bytes));
    this.#idle = this.#idle.filter((one) => one !== best);
    return best.table;
  }

  /** No thread has a state any more that refers to it. */
  giveBack(table: SharedArrayBuffer): void {
    const idle = [...this.#idle, { table, sinceMs: this.#nowMs() }];
    let bytes = idle.reduce((sum, one) => sum + one.table.byteLength, 0);
    const first = idle.findIndex((one) => {
      const isEnough = bytes <= idleBytesMax;
      bytes -= one.table.byteLength;
      return isEnough;
    });
    this.#idle = first < 0 ? [] : idle.slice(first);
  }
}

/** A small table does not take the place of a large one. */
function fits({ byteLength }: SharedArrayBuffer, bytes: number): boolean {
  return byteLength >= bytes && byteLength <= 2 * roomFor(bytes);
}

/** An eighth more at most: the next version of a site is rarely of the same size. */
function roomFor(bytes: number): number {
  const step = 2 ** Math.max(9, Math.floor(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}
