// Whether a clear pattern is valid: the budget of core, then SQLite's own FTS5 parser over an empty index of the same columns and tokenizer. Central and agent ask the same.

import { messageOf } from "../core/faults.ts";
import { createTextIndexSql, normalPattern } from "../core/index-schema.ts";
import { patternFault } from "../core/pattern-budget.ts";
import { openSqlite } from "./sqlite.ts";

export type PatternCheck = {
  /** Why the pattern is refused, to be read after the pattern itself; undefined where it is valid. Never throws. */
  readonly check: (pattern: string) => string | undefined;
} & Disposable;

export function openPatternCheck(): PatternCheck {
  const db = openSqlite(":memory:", { sync: "normal" });
  db.exec(createTextIndexSql("probe"));
  const parse = db.prepare<[string]>("SELECT 1 FROM probe WHERE probe MATCH ?");
  return {
    check: (pattern) => {
      const normal = normalPattern(pattern);
      const fault = patternFault(normal);
      if (fault !== undefined) return fault;
      try {
        parse.get(normal);
        return undefined;
      } catch (error) {
        return `is no FTS5 query: ${messageOf(error).replace(/^fts5: /, "")}`;
      }
    },
    [Symbol.dispose]: () => db.close(),
  };
}
