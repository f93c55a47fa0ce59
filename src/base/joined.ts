// Work that many ask for and one run does for all: who asks while a run is under way waits for the next one, together with all who ask until that starts.

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
    this.#running = run.catch(() => undefined); // Its outcome is that of those who asked for it.
    return run;
  }
}
