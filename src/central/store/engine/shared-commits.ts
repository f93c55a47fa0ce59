// Small writes of many agents in common transactions: each of a hundred agents that receipts one entry would else cost the disk a sync of its own.

import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { Together } from "../../../base/together.ts";
import type { Store, Tx } from "./database.ts";
import { isStoreUnreachable } from "./postgres-faults.ts";
import { readCommitted, type ReadCommittedUnit } from "./read-committed.ts";
import { isPostgres } from "./statements.ts";

type Action = (tx: Tx) => Promise<void>;

/** The window of a shared commit: at most a hundred syncs a second, and a receipt is that much later. */
const windowMs = 10;
/** Some 100 ms of the store in one go. */
const actionsMax = 250;
const actionsPerTurn = 10;

export class SharedCommits {
  readonly #together: Together<Action, void>;
  /** Of units on the list of those that run under READ COMMITTED; on SQLite there is one kind of transaction, and all share it. */
  readonly #listed: Together<Action, void>;

  constructor(store: Store) {
    const sharing = (begin: () => Begun): Together<Action, void> =>
      new Together({
        run: (actions) => commit(begin(), actions),
        gather: () => sleep(windowMs),
        weightMax: actionsMax,
        failsAll: isStoreUnreachable,
      });
    this.#together = sharing(() => store.transaction());
    this.#listed = isPostgres(store)
      ? sharing(() => readCommitted(store, "hellos", "reports", "receipts", "log_confirmations"))
      : this.#together;
  }

  /**
   * Durable when it resolves. Throws what the action throws. It may be run twice; only the last run counts. `unit` names it on the list in read-committed.ts; without it
   * the transaction is SERIALIZABLE.
   */
  async run(action: Action, unit?: ReadCommittedUnit): Promise<void> {
    return (unit === undefined ? this.#together : this.#listed).ask(action);
  }
}

type Begun = ReturnType<Store["transaction"]>;

async function commit(begun: Begun, actions: readonly Action[]): Promise<readonly void[]> {
  return begun.execute(async (tx) => {
    const outcomes: void[] = [];
    for (const [at, action] of actions.entries()) {
      outcomes.push(await action(tx));
      if (at % actionsPerTurn === actionsPerTurn - 1) await setImmediate();
    }
    return outcomes;
  });
}
