// Transactions over the store: what the customer API, operators and central itself change goes through them. On SQLite they run one after the other. On PostgreSQL
// they run beside each other, and one that met another is taken back and run again: an action has no effect but on the store and on what it returns.

import type { Sealer } from "../../../base/seal.ts";
import type { MarkJournal } from "../bots/mark-journal.ts";
import type { Store } from "./database.ts";
import { OwnTurns } from "./own-turns.ts";
import { readCommitted, type OwnRowUnit } from "./read-committed.ts";
import type { Work } from "./work.ts";

export type CustomerStoreDeps = {
  readonly store: Store;
  readonly sealer: Sealer;
  readonly now: () => Date;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Coalesces what changes bot sets. Without it the journals are told of each change in its own transaction. */
  readonly marks?: Pick<MarkJournal, "isDue" | "changed">;
  /** Told of each transaction that made journals longer, when it is in force: where they end now. Must not throw. */
  readonly onJournals?: (ends: ReadonlyMap<number, number>) => void;
};

/** The part of the store that the customer API and operators use. */
export type Transactions = Pick<CustomerStore, "run" | "transact">;

/** The end of a transaction's action: with `keep` false all that it wrote is taken back. */
export type Ended<T> = { readonly keep: boolean; readonly value: T };

export type Done<T> = {
  readonly value: T;
  /** Deployment sites whose journal is longer now. Empty when nothing was kept. */
  readonly appended: readonly number[];
  /** Main domains that were named. */
  readonly concerned: readonly string[];
};

export class CustomerStore {
  readonly #deps: CustomerStoreDeps;
  readonly #turns = new OwnTurns();

  constructor(deps: CustomerStoreDeps) {
    this.#deps = deps;
  }

  /** Runs a transaction that is kept, and returns its value. For what makes no journal longer: nobody is woken. */
  async transact<T>(action: (work: Work) => Promise<T>): Promise<T> {
    return (await this.run(async (work) => ({ keep: true, value: await action(work) }))).value;
  }

  /** Runs a transaction. The action may be run several times; only what its last run did and returned counts. `listed`: it is one that may be READ COMMITTED. */
  async run<T>(action: (work: Work) => Promise<Ended<T>>, listed?: OwnRowUnit): Promise<Done<T>> {
    return listed === undefined
      ? this.#run(action, undefined)
      : this.#turns.run(listed.key, async () => this.#run(action, listed));
  }

  async #run<T>(
    action: (work: Work) => Promise<Ended<T>>,
    listed: OwnRowUnit | undefined,
  ): Promise<Done<T>> {
    const { store, sealer, now, randomBytes, marks, onJournals } = this.#deps;
    // Asked once: the answer takes the turn of this moment, however often the action is run.
    let areDue: boolean | undefined;
    const marksAreDue = (): boolean => (areDue ??= marks?.isDue() ?? true);
    try {
      const begun = listed === undefined ? store.transaction() : readCommitted(store, listed.unit);
      const { done, unjournaled, ends } = await begun.execute(async (tx) => {
        await listed?.lock(tx);
        const appended = new Set<number>();
        const unjournaled = new Set<number>();
        const concerned = new Set<string>();
        const ends = new Map<number, number>();
        const work: Work = {
          tx,
          at: now().toISOString(),
          sealer,
          randomHex: (count) => Buffer.from(randomBytes(count)).toString("hex"),
          appended,
          ends,
          unjournaled,
          concerned,
          marksAreDue,
        };
        const { keep, value } = await action(work);
        if (!keep) throw new TakenBack(value);
        const done = { value, appended: [...appended], concerned: [...concerned] };
        return { done, unjournaled, ends };
      });
      if (ends.size > 0) onJournals?.(ends);
      marks?.changed(unjournaled);
      return done;
    } catch (error) {
      if (!(error instanceof TakenBack)) throw error;
      // Thrown just above, with the value of this very action.
      return { value: error.value as T, appended: [], concerned: [] };
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
