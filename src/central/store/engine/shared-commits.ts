// Small writes of many agents in common transactions: each of a hundred agents that receipts one entry would else cost the disk a sync of its own.

import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { Together } from "../../../base/together.ts";
import type { Store, Tx } from "./database.ts";

type Action = (tx: Tx) => Promise<void>;

/** The window of a shared commit: at most a hundred syncs a second, and a receipt is that much later. */
const windowMs = 10;
/** Some 100 ms of the store in one go. */
const actionsMax = 250;
const actionsPerTurn = 10;

export class SharedCommits {
  readonly #together: Together<Action, void>;

  constructor(store: Store) {
    this.#together = new Together({
      run: (actions) => commit(store, actions),
      gather: () => sleep(windowMs),
      weightMax: actionsMax,
    });
  }

  /** Durable when it resolves. Throws what the action throws. It may be run twice; only the last run counts. */
  async run(action: Action): Promise<void> {
    return this.#together.ask(action);
  }
}

async function commit(store: Store, actions: readonly Action[]): Promise<readonly void[]> {
  return store.transaction().execute(async (tx) => {
    const outcomes: void[] = [];
    for (const [at, action] of actions.entries()) {
      outcomes.push(await action(tx));
      if (at % actionsPerTurn === actionsPerTurn - 1) await setImmediate();
    }
    return outcomes;
  });
}
