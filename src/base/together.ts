// Does small jobs of many callers together: while one run is under way, new jobs gather for the next. A job
// that fails harms none of the others: a run that fails is repeated in halves, until the job that fails is
// alone. What fails whatever the jobs are is not repeated.

export type TogetherOptions<T, R> = {
  /** Returns outcomes in the order of the items. If it fails, none of the items was done. */
  readonly run: (items: readonly T[]) => Promise<readonly R[]>;
  /** Awaited before each run; jobs that come until then join the run. Must not fail. */
  readonly gather: () => Promise<unknown>;
  /** The most weight of the items of one run; at least one item is taken. */
  readonly weightMax: number;
  /** The weight of an item; each weighs 1 if this is absent. */
  readonly weightOf?: (item: T) => number;
  /** Returns whether each job of the run would fail by this error if it was alone. */
  readonly failsAll?: (error: unknown) => boolean;
};

type Waiting<T, R> = PromiseWithResolvers<R> & { readonly item: T };

export class Together<T, R> {
  readonly #options: TogetherOptions<T, R>;
  #waiting: Waiting<T, R>[] = [];
  #isRunning = false;

  constructor(options: TogetherOptions<T, R>) {
    this.#options = options;
  }

  /** Does one job. Throws what its own run throws. It may be run several times; only the last run counts. */
  async ask(item: T): Promise<R> {
    const waiting: Waiting<T, R> = { ...Promise.withResolvers<R>(), item };
    this.#waiting.push(waiting);
    if (!this.#isRunning) void this.#runAll();
    return waiting.promise;
  }

  /** Runs everything. Never rejects, for each outcome is its caller's. */
  async #runAll(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      await this.#options.gather();
      await this.#settle(this.#waiting.splice(0, this.#count()));
    }
    this.#isRunning = false;
  }

  async #settle(batch: readonly Waiting<T, R>[]): Promise<void> {
    try {
      await this.#runBatch(batch);
    } catch (error) {
      if (batch.length === 1 || this.#options.failsAll?.(error) === true) {
        for (const { reject } of batch) reject(error);
        return;
      }
      const half = Math.ceil(batch.length / 2);
      await this.#settle(batch.slice(0, half));
      await this.#settle(batch.slice(half));
    }
  }

  async #runBatch(batch: readonly Waiting<T, R>[]): Promise<void> {
    const outcomes = await this.#options.run(batch.map(({ item }) => item));
    if (outcomes.length !== batch.length)
      throw new TypeError(`${outcomes.length} outcomes of ${batch.length} jobs`);
    // The outcomes are as many as the batch: each job has its own.
    for (const [at, { resolve }] of batch.entries()) resolve(outcomes[at] as R);
  }

  #count(): number {
    const { weightMax, weightOf } = this.#options;
    let weight = 0;
    const tooMany = this.#waiting.findIndex(
      ({ item }) => (weight += weightOf?.(item) ?? 1) > weightMax,
    );
    return tooMany < 0 ? this.#waiting.length : Math.max(1, tooMany);
  }
}
