// Runs actions one at a time, in order of arrival: all actions, or those with the same key.

export class Mutex {
  #tail: Promise<void> = Promise.resolve();

  /**
   * Runs `action` when all that came before have ended, whatever their outcome. The caller gets its outcome.
   */
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

export class KeyedMutex<K> {
  readonly #turns = new Map<K, { readonly mutex: Mutex; users: number }>();

  /** Runs the action alone under the key's mutex, which exists while somebody is in it or waits. */
  async run<T>(key: K, action: () => Promise<T> | T): Promise<T> {
    const turn = this.#turns.get(key) ?? { mutex: new Mutex(), users: 0 };
    this.#turns.set(key, turn);
    turn.users++;
    try {
      return await turn.mutex.run(action);
    } finally {
      turn.users--;
      if (turn.users === 0) this.#turns.delete(key);
    }
  }
}

// Work that many ask for and one run does for all. Whoever asks while a run is under way waits for the next
// one, together with all who ask before that starts.

export class Joined {
  readonly #action: () => Promise<void>;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(action: () => Promise<void>) {
    this.#action = action;
  }

  /** Resolves or rejects with a run that starts after this call. */
  async run(): Promise<void> {
    return (this.#next ??= this.#start());
  }

  async #start(): Promise<void> {
    await this.#running;
    this.#next = undefined;
    const run = this.#action();
    this.#running = run.catch(() => undefined); // Its outcome belongs to those who asked for it.
    return run;
  }
}
