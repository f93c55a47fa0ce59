// Whether a response that is about to be stored matches a pattern. Patterns of one exact word are compared with
// its text, all others are asked of the same FTS5, over an index in memory that holds this one row.

import { openSqlite } from "../../../base/sqlite.ts";
import { ftsQuery } from "../../../core/patterns/pattern-query.ts";
import { ExactPatterns } from "../../../core/patterns/exact-pattern.ts";
import {
  createTextIndexSql,
  indexedText,
  insertTextSql,
  type IndexedEntry,
  type IndexedText,
} from "../../../core/patterns/index-schema.ts";

/** The most evaluations by FTS5 for one response: at 8 µs each 8 ms. Beyond that it counts as matching: what is not stored is never stale. */
const evaluationsMax = 1_000;

export class Guard implements Disposable {
  readonly #db = openSqlite(":memory:", { sync: "normal" });
  readonly #exact = new WeakMap<readonly string[], ExactPatterns>();
  readonly #insert;
  readonly #match;

  constructor() {
    this.#db.exec(createTextIndexSql("candidate"));
    this.#insert = this.#db.prepare<[number, ...IndexedText]>(insertTextSql("candidate"));
    this.#match = this.#db.prepare<[string]>("SELECT 1 FROM candidate WHERE candidate MATCH ?");
  }

  /**
   * Returns the position of the first clear of which a list has a matching pattern; -1 where none has. Patterns
   * are in their normal form and valid. What is made of a list is kept as long as the list.
   */
  firstMatch(entry: IndexedEntry, clears: readonly (readonly (readonly string[])[])[]): number {
    if (clears.length === 0) return -1;
    const text = indexedText(entry);
    let evaluations = 0;
    let isInserted = false;
    const matchesRest = (pattern: string): boolean => {
      if (++evaluations > evaluationsMax) return true;
      if (!isInserted) {
        this.#db.exec("BEGIN");
        isInserted = true;
        this.#insert.run(1, ...text);
      }
      return this.#matches(pattern);
    };
    try {
      return clears.findIndex((lists) =>
        lists.some((list) => {
          const exact = this.#exactOf(list);
          return exact.matches(text) || exact.rest.some(matchesRest);
        }),
      );
    } finally {
      if (isInserted) this.#db.exec("ROLLBACK"); // The row never reaches the index: nothing piles up in it.
    }
  }

  #exactOf(list: readonly string[]): ExactPatterns {
    const known = this.#exact.get(list);
    if (known !== undefined) return known;
    const exact = new ExactPatterns(list);
    this.#exact.set(list, exact);
    return exact;
  }

  /** A pattern that cannot be evaluated counts as matching. */
  #matches(pattern: string): boolean {
    try {
      return this.#match.get(ftsQuery(pattern)) !== undefined;
    } catch {
      return true;
    }
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
