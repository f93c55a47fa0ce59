// Transactions over the store, one after the other: what the customer API, operators and central itself change goes through them.

import type { Sealer } from "../../../base/seal.ts";
import type { MarkJournal } from "../bots/mark-journal.ts";
import type { Store } from "./database.ts";
import type { Work } from "./work.ts";

export type CustomerStoreDeps = {
  readonly store: Store;
  readonly sealer: Sealer;
  readonly now: () => Date;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Coalesces what changes bot sets. Without it the journals are told of each change in its own transaction. */
  readonly marks?: Pick<MarkJournal, "isDue" | "changed">;
};

/** What an action of a transaction ends with: `keep` false takes back all that it wrote. */
export type Ended<T> = { readonly keep: boolean; readonly value: T };

export type Done<T> = {
  readonly value: T;
  /** Deployment sites whose journal is longer now. Empty when nothing was kept. */
  readonly appended: readonly number[];
};

export class CustomerStore {
  readonly #deps: CustomerStoreDeps;

  constructor(deps: CustomerStoreDeps) {
    this.#deps = deps;
  }

  /** One transaction that is kept, and what it answers. For what makes no journal longer: nobody is told of that. */
  async transact<T>(action: (work: Work) => Promise<T>): Promise<T> {
    return (await this.run(async (work) => ({ keep: true, value: await action(work) }))).value;
  }

  async run<T>(action: (work: Work) => Promise<Ended<T>>): Promise<Done<T>> {
    const { store, sealer, now, randomBytes, marks } = this.#deps;
    const appended = new Set<number>();
    const unjournaled = new Set<number>();
    try {
      const done = await store.transaction().execute(async (tx) => {
        const work: Work = {
          tx,
          at: now().toISOString(),
          sealer,
          randomHex: (count) => Buffer.from(randomBytes(count)).toString("hex"),
          appended,
          unjournaled,
          marksAreDue: () => marks?.isDue() ?? true,
        };
        const { keep, value } = await action(work);
        if (!keep) throw new TakenBack(value);
        return { value, appended: [...appended] };
      });
      marks?.changed(unjournaled);
      return done;
    } catch (error) {
      if (!(error instanceof TakenBack)) throw error;
      // Thrown just above, with the value of this very action.
      return { value: error.value as T, appended: [] };
    }
  }
}

/** Kysely rolls back when its callback throws, and only then. */
class TakenBack extends Error {
  readonly value: unknown;

  constructor(value: unknown) {
    super("the transaction is taken back");
    this.value = value;
  }
}
