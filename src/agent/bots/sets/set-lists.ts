// The elements of bot sets in agent.db, as numbered lists: a set names one in its row, and what no set names is swept.
//
// A whole set of a million elements is a list that is filled in many small transactions, with turns of the event loop between them. They are not synced:
// the commit of the set's row is, in the same log behind them.

import { setImmediate } from "node:timers/promises";
import { RangeReader } from "../../../core/addresses/range-list.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import type { Sqlite, Statement } from "../../../base/sqlite.ts";

/** Some 5 ms a transaction. */
const elementsPerTurn = 1_000;

export class SetLists {
  readonly #db: Sqlite;
  readonly #add: Statement<[list: number, bot: string, range: string]>;
  readonly #copy: Statement<
    [list: number, bot: string, range: string, before: number, bot: string, range: string]
  >;
  readonly #remove: Statement<[list: number, bot: string, range: string]>;
  readonly #next: Statement<[after: number], { readonly list: number | null }>;
  readonly #isNamed: Statement<[list: number]>;
  readonly #drop: Statement<[list: number, again: number, limit: number]>;
  readonly #ranges = new RangeReader();
  /** Named by no set yet: not to be swept. */
  readonly #taken = new Set<number>();
  #last: number;

  constructor(db: Sqlite) {
    this.#db = db;
    this.#add = db.prepare(
      "INSERT OR IGNORE INTO bot_range (list, bot, range, added_at) VALUES (?, ?, ?, unixepoch())",
    );
    this.#copy = db.prepare(
      `INSERT OR IGNORE INTO bot_range (list, bot, range, added_at) VALUES (?, ?, ?,
       coalesce((SELECT added_at FROM bot_range WHERE list = ? AND bot = ? AND range = ?), unixepoch()))`,
    );
    this.#remove = db.prepare("DELETE FROM bot_range WHERE list = ? AND bot = ? AND range = ?");
    this.#next = db.prepare("SELECT min(list) AS list FROM bot_range WHERE list > ?");
    this.#isNamed = db.prepare("SELECT 1 FROM bot_set WHERE list = ?");
    this.#drop = db.prepare(
      "DELETE FROM bot_range WHERE list = ? AND (bot, range) IN (SELECT bot, range FROM bot_range WHERE list = ? LIMIT ?)",
    );
    const { last } = db
      .prepare<[], { readonly last: number }>(
        "SELECT max(coalesce((SELECT max(list) FROM bot_set), 0), coalesce((SELECT max(list) FROM bot_range), 0)) AS last",
      )
      .get() ?? { last: 0 };
    this.#last = last;
  }

  /** A number that no list has; it is kept from the sweep until it is released. */
  take(): number {
    this.#taken.add(++this.#last);
    return this.#last;
  }

  release(list: number): void {
    this.#taken.delete(list);
  }

  /** In the caller's transaction, which is to be rolled back where it answers false: something was there already, or was not. */
  change(list: number, added: readonly SetElement[], removed: readonly SetElement[]): boolean {
    return (
      removed.every(({ bot, range }) => this.#remove.run(list, bot, range).changes === 1) &&
      added.every(({ bot, range }) => this.#add.run(list, bot, range).changes === 1)
    );
  }

  /** Whether the list is now what was promised. What is in the list `before` keeps the time since when it is there. */
  async fill(
    list: number,
    before: number,
    want: { readonly count: number; readonly digest: string },
    elements: AsyncIterable<readonly SetElement[]>,
    signal: AbortSignal,
  ): Promise<boolean> {
    let [count, digest] = [0, emptySetDigest];
    for await (const batch of elements) {
      for (let at = 0; at < batch.length; at += elementsPerTurn) {
        signal.throwIfAborted();
        const part = batch.slice(at, at + elementsPerTurn);
        count += part.length;
        if (count > want.count || !this.#addPart(list, before, part)) return false;
        digest = changedSetDigest(digest, part, []);
        await setImmediate();
      }
    }
    return count === want.count && digest === want.digest;
  }

  async sweep(signal: AbortSignal): Promise<void> {
    for (let at = 0; ;) {
      const list = this.#next.get(at)?.list ?? undefined;
      if (list === undefined) return;
      at = list;
      if (this.#taken.has(list) || this.#isNamed.get(list) !== undefined) continue;
      let dropped = 0;
      do {
        if (signal.aborted) return;
        dropped = this.#unsynced(() => this.#drop.run(list, list, elementsPerTurn).changes);
        await setImmediate();
      } while (dropped > 0);
    }
  }

  #addPart(list: number, before: number, part: readonly SetElement[]): boolean {
    return this.#unsynced(() =>
      part.every(
        ({ bot, range }) =>
          typeof this.#ranges.read(range) !== "string" &&
          this.#copy.run(list, bot, range, before, bot, range).changes === 1,
      ),
    );
  }

  #unsynced<T>(action: () => T): T {
    this.#db.pragma("synchronous = normal");
    try {
      return this.#db.transaction(action).immediate();
    } finally {
      this.#db.pragma("synchronous = full");
    }
  }
}
