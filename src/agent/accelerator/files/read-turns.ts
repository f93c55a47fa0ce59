// Whose turn it is to read from the disk. All reads of the program go through four threads, in the order in which they were asked for: three hundred visitors of large
// files would keep everybody else's reads waiting, and fill each turn of the loop with their pieces.

/** So many pieces of large files are read at a time in a worker: two for each thread, so that none of them rests. */
const readsAtOnce = 8;

export class ReadTurns {
  #reading = 0;
  /** In the order in which they came: whoever was served waits behind all others. */
  readonly #waiting = new Set<() => void>();

  /** Calls `read` when it is its turn. Throws what it throws. */
  async take<Read>(read: () => Promise<Read>): Promise<Read> {
    if (this.#reading < readsAtOnce) this.#reading++;
    else await new Promise<void>((given) => this.#waiting.add(given));
    try {
      return await read();
    } finally {
      this.#pass();
    }
  }

  /** Gives a turn that has ended to the next one. */
  #pass(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#reading--;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
