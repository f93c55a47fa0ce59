// Shared memory for the tables of files, used again when nobody reads it any more. Shared buffers that no
// thread refers to are hardly ever garbage-collected: over 60 activations of 10,000 files, each table had
// grown the agent by its 2.5 MB.
//
// Invariant: what was given back rests before it is written again, for a request that began before may still
// look something up. A request that does so even later notices it by the table itself
// (core/serving/manifest-table.ts).

/** The time of rest. Requests look files up when they begin; what they send afterwards needs no table. */
const restMs = 10_000;
/** The most bytes that lie idle; the oldest goes first. */
const idleBytesMax = 64 * 2 ** 20;

type Idle = { readonly table: SharedArrayBuffer; readonly sinceMs: number };

export class TableMemory {
  readonly #nowMs: () => number;
  /** Oldest first. */
  #idle: readonly Idle[] = [];

  /** `nowMs` is monotonic. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns a buffer of at least that many bytes; its content is undefined. */
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

  /** Gives back a table to which no thread's state refers any more. */
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

/** Whether a table has room for these bytes without wasting a much larger one on them. */
function fits({ byteLength }: SharedArrayBuffer, bytes: number): boolean {
  return byteLength >= bytes && byteLength <= 2 * roomFor(bytes);
}

/** Rounds up by an eighth at most, since the next version of a site rarely has the same size. */
function roomFor(bytes: number): number {
  const step = 2 ** Math.max(9, Math.floor(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}
