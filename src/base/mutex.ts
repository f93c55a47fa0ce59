// One at a time, in order of arrival.

export class Mutex {
  #tail: Promise<void> = Promise.resolve();

  /** Runs `action` when all that came before have ended, whatever their outcome. Its own outcome is the caller's. */
  async run<T>(action: () => Promise<T> | T): Promise<T> {
    const before = this.#tail;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tail = promise;
    await before;
    try {
      return await action();
    } finally {
      resolve();
    }
  }
}
