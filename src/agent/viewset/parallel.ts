// Bounded parallelism: a number of workers over a list, and slots that several such lists share.

/**
 * Runs `action` for each item, at most `limit` at a time. The first failure, or `signal`, stops the rest
 * through the signal that the actions are given; its reason is thrown when all actions that had begun have
 * ended.
 */
export async function inParallel<T>(
  items: Iterable<T>,
  limit: number,
  action: (item: T, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const failure = new AbortController();
  const either = AbortSignal.any([signal, failure.signal]);
  const rest = items[Symbol.iterator]();
  const work = async (): Promise<void> => {
    while (!either.aborted) {
      const next = rest.next();
      if (next.done === true) return;
      try {
        await action(next.value, either);
      } catch (error) {
        failure.abort(error); // A second failure changes nothing: the first is the reason.
      }
    }
  };
  await Promise.all(Array.from({ length: limit }, work));
  either.throwIfAborted();
}

type Turn = ReturnType<typeof Promise.withResolvers<void>>;

/** A number of slots that are given out in the order of asking. */
export class Slots {
  #free: number;
  readonly #queue = new Set<Turn>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot; leaves the queue when `signal` aborts. */
  async run<T>(action: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      return await action();
    } finally {
      this.#give();
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const turn = Promise.withResolvers<void>();
    const leave = (): void => {
      if (this.#queue.delete(turn)) turn.reject(signal.reason);
    };
    this.#queue.add(turn);
    signal.addEventListener("abort", leave, { once: true });
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  #give(): void {
    const [next] = this.#queue;
    if (next === undefined) this.#free++;
    else {
      this.#queue.delete(next);
      next.resolve();
    }
  }
}
