// The return of a store that is away, which thousands of channels wait for: one look a second for all of them, and nothing of what they were to do is lost.

import { sleep } from "../../base/wait.ts";
import { isStoreAway } from "../store/engine/postgres-faults.ts";

export type StoreReturnOptions = {
  /** Asks the store for anything; rejects while it is away. */
  readonly ask: () => Promise<unknown>;
  /** Between two looks, and the least time until something is tried again. */
  readonly intervalMs?: number;
};

const lookIntervalMs = 1_000;

export class StoreReturn implements Disposable {
  readonly #options: StoreReturnOptions;
  readonly #ending = new AbortController();
  #returning: Promise<void> | undefined;

  constructor(options: StoreReturnOptions) {
    this.#options = options;
  }

  /** Whether somebody waits for it. */
  get isAwaited(): boolean {
    return this.#returning !== undefined;
  }

  /**
   * Runs the action until the store takes it, which may repeat all that it does. Throws what it throws otherwise; also the absence of the store, once it is not meant any
   * more, or nobody looks any more.
   */
  async patiently<T>(action: () => Promise<T>, isMeant: () => boolean): Promise<T> {
    for (;;) {
      try {
        return await action();
      } catch (error) {
        if (!isStoreAway(error) || !isMeant()) throw error;
        await this.#returned();
        if (!isMeant() || this.#ending.signal.aborted) throw error;
      }
    }
  }

  [Symbol.dispose](): void {
    this.#ending.abort();
  }

  async #returned(): Promise<void> {
    this.#returning ??= this.#look().finally(() => (this.#returning = undefined));
    return this.#returning;
  }

  /** Never rejects. It looks after a pause only: a store that is read and refuses what is written is asked no more often. */
  async #look(): Promise<void> {
    const { ask, intervalMs = lookIntervalMs } = this.#options;
    while (await sleep(intervalMs, this.#ending.signal)) {
      try {
        return void (await ask());
      } catch (error) {
        if (!isStoreAway(error)) return;
      }
    }
  }
}
