// The end of something that lives long, for the many who meanwhile wait for something short of it or for its end. A race with a promise of the end would leave
// something of itself there, some 400 bytes, until then: what waits for a promise is let go by that promise alone.

export class Ending<T> {
  readonly #ended = Promise.withResolvers<T>();
  readonly #waiting = new Set<(how: T) => void>();
  #isOver = false;

  /** Resolves with how it ended; for one who waits for nothing else. */
  get promise(): Promise<T> {
    return this.#ended.promise;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Only the first end counts. */
  end(how: T): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended.resolve(how);
    for (const resolve of this.#waiting) resolve(how);
    this.#waiting.clear();
  }

  /** The outcome of `work`, or how it ended if that comes first. Nothing of `work` is kept. */
  async or<W>(work: Promise<W>): Promise<W | T> {
    if (this.#isOver) {
      work.catch(() => undefined); // Nobody waits for it any more.
      return this.promise;
    }
    const { promise, resolve, reject } = Promise.withResolvers<W | T>();
    this.#waiting.add(resolve);
    work.then(resolve, reject);
    try {
      return await promise;
    } finally {
      this.#waiting.delete(resolve);
    }
  }
}
