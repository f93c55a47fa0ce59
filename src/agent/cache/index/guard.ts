// Whether a response that is about to be stored matches a pattern: the same FTS5, over an index in memory that holds this one row.

import { openSqlite } from "../../../base/sqlite.ts";
import {
  createTextIndexSql,
  indexedText,
  insertTextSql,
  type IndexedEntry,
  type IndexedText,
} from "../../../core/patterns/index-schema.ts";

/** The most evaluations for one response: at 8 µs each 8 ms. Beyond that it counts as matching: what is not stored is never stale. */
const evaluationsMax = 1_000;

export class Guard implements Disposable {
  readonly #db = openSqlite(":memory:", { sync: "normal" });
  readonly #insert;
  readonly #match;

  constructor() {
    this.#db.exec(createTextIndexSql("candidate"));
    this.#insert = this.#db.prepare<[number, ...IndexedText]>(insertTextSql("candidate"));
    this.#match = this.#db.prepare<[string]>("SELECT 1 FROM candidate WHERE candidate MATCH ?");
  }

  /** Returns the position of the first list that has a matching pattern; -1 where none has. Patterns are in their normal form and valid. */
  firstMatch(entry: IndexedEntry, lists: readonly (readonly string[])[]): number {
    if (lists.length === 0) return -1;
    let evaluations = 0;
    this.#db.exec("BEGIN");
    try {
      this.#insert.run(1, ...indexedText(entry));
      return lists.findIndex((patterns) =>
        patterns.some((pattern) => ++evaluations > evaluationsMax || this.#matches(pattern)),
      );
    } finally {
      this.#db.exec("ROLLBACK"); // The row never reaches the index: nothing piles up in it.
    }
  }

  /** A pattern that cannot be evaluated counts as matching. */
  #matches(pattern: string): boolean {
    try {
      return this.#match.get(pattern) !== undefined;
    } catch {
      return true;
    }
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
