// Bytes of which all workers together may have so many: each takes and gives back, and what a worker still had when it ended is given back by main.
//
//   taken (8 bytes)   i64, by all workers
//   own (8 bytes)     i64, one buffer a worker: its part of what is taken

export type BudgetShare = {
  readonly taken: SharedArrayBuffer;
  readonly own: SharedArrayBuffer;
  readonly bytesMax: number;
};

/** The part of one worker. */
export class SharedBudget {
  readonly bytesMax: number;
  readonly #taken: BigInt64Array;
  readonly #own: BigInt64Array;

  constructor({ taken, own, bytesMax }: BudgetShare) {
    this.bytesMax = bytesMax;
    this.#taken = new BigInt64Array(taken);
    this.#own = new BigInt64Array(own);
  }

  /** False: there is no room for so many, and nothing was taken. */
  take(bytes: number): boolean {
    const before = Number(Atomics.add(this.#taken, 0, BigInt(bytes)));
    if (before + bytes > this.bytesMax) {
      Atomics.sub(this.#taken, 0, BigInt(bytes));
      return false;
    }
    // A worker that dies between the two leaves these bytes taken until the agent starts again.
    Atomics.add(this.#own, 0, BigInt(bytes));
    return true;
  }

  give(bytes: number): void {
    Atomics.sub(this.#own, 0, BigInt(bytes));
    Atomics.sub(this.#taken, 0, BigInt(bytes));
  }

  /** The bytes that this worker has. */
  get own(): number {
    return Number(Atomics.load(this.#own, 0));
  }
}

/** Main's side. */
export class BudgetOwner {
  readonly #taken = new SharedArrayBuffer(8);
  readonly #bytesMax: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** A part for a worker that starts. */
  share(): BudgetShare {
    return { taken: this.#taken, own: new SharedArrayBuffer(8), bytesMax: this.#bytesMax };
  }

  /** Gives back what a worker still had; to be called when its thread runs no line more. */
  reclaim({ own }: BudgetShare): void {
    const left = Atomics.exchange(new BigInt64Array(own), 0, 0n);
    Atomics.sub(new BigInt64Array(this.#taken), 0, left);
  }
}
