// Turns by key within one process: who would wait for the same row waits here, and not with a connection of the pool, of which others have need.

export class OwnTurns {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs the action when all that came before with the same key have ended. The caller gets its outcome. */
  async run<T>(key: string, action: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(key, promise);
    await before;
    try {
      return await action();
    } finally {
      if (this.#last.get(key) === promise) this.#last.delete(key);
      resolve();
    }
  }

  /** Those with something to do. */
  get keys(): readonly string[] {
    return [...this.#last.keys()];
  }
}
