// Small writes of many agents in common transactions: each of a hundred agents that receipts one entry would else cost the disk a sync of its own.
//
// What is asked for within a few milliseconds is written together. An action that fails is tried by itself, so
// that it harms none of the others.

import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { Store, Tx } from "./database.ts";

type Action = (tx: Tx) => Promise<void>;
type Waiting = PromiseWithResolvers<void> & { readonly action: Action };

/** At most a hundred syncs a second; a receipt is that much later. */
const windowMs = 10;
/** Some 100 ms of the store in one go. */
const actionsMax = 250;
const actionsPerTurn = 10;

export class SharedCommits {
  readonly #store: Store;
  #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Durable when it resolves. Throws what the action throws. It may be run twice; only the last run counts. */
  async run(action: Action): Promise<void> {
    const waiting: Waiting = { ...Promise.withResolvers<void>(), action };
    this.#waiting.push(waiting);
    if (!this.#isRunning) void this.#runAll();
    return waiting.promise;
  }

  /** Never rejects: each outcome is its caller's. */
  async #runAll(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      await sleep(windowMs);
      const batch = this.#waiting.splice(0, actionsMax);
      try {
        await this.#commit(batch);
        for (const { resolve } of batch) resolve();
      } catch (error) {
        const [only] = batch;
        if (batch.length === 1) only?.reject(error);
        else for (const one of batch) await this.#commit([one]).then(one.resolve, one.reject);
      }
    }
    this.#isRunning = false;
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    await this.#store.transaction().execute(async (tx) => {
      for (const [at, { action }] of batch.entries()) {
        await action(tx);
        if (at % actionsPerTurn === actionsPerTurn - 1) await setImmediate();
      }
    });
  }
}
