// The end of something that lives long, for the many who meanwhile wait either for something shorter or for
// that end. A race with a promise of the end would keep some 400 bytes per race until then; here, whatever
// waits for a promise is released by that promise alone.

export class Ending<T> {
  readonly #ended = Promise.withResolvers<T>();
  readonly #waiting = new Set<(how: T) => void>();
  #isOver = false;

  /** Resolves with how it ended, for a caller that waits for nothing else. */
  get promise(): Promise<T> {
    return this.#ended.promise;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Ends it; only the first end counts. */
  end(how: T): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended.resolve(how);
    for (const resolve of this.#waiting) resolve(how);
    this.#waiting.clear();
  }

  /** Returns the outcome of `work`, or how it ended if that comes first. Nothing of `work` is kept. */
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
