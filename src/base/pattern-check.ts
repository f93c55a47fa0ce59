// Checks whether a clear pattern is valid: first by our own rules (core/patterns/pattern-fault.ts), then by
// SQLite's FTS5 parser over an empty index with the same columns and tokenizer. The two agree (`npm run bench
// -- patterns`); if they ever do not, the stricter one counts. Central and agent check alike.

import { messageOf } from "../core/faults.ts";
import { createTextIndexSql } from "../core/patterns/index-schema.ts";
import { ftsQuery } from "../core/patterns/pattern-query.ts";
import { patternFault, type PatternFault } from "../core/patterns/pattern-fault.ts";
import { openSqlite } from "./sqlite.ts";

export type PatternCheck = {
  /** Says why the pattern is refused, or returns undefined if it is valid. Never throws. */
  readonly check: (pattern: string) => PatternFault | undefined;
  /** Returns what FTS5 says of a pattern in its normal form, or undefined if it takes it. */
  readonly refusedByFts5: (normal: string) => string | undefined;
} & Disposable;

export function openPatternCheck(): PatternCheck {
  const db = openSqlite(":memory:", { sync: "normal" });
  db.exec(createTextIndexSql("probe"));
  const parse = db.prepare<[string]>("SELECT 1 FROM probe WHERE probe MATCH ?");
  const refusedByFts5 = (normal: string): string | undefined => {
    try {
      parse.get(ftsQuery(normal));
      return undefined;
    } catch (error) {
      return `is no FTS5 query: ${messageOf(error).replace(/^fts5: /, "")}`;
    }
  };
  return {
    check: (pattern) => patternFault(pattern, refusedByFts5),
    refusedByFts5,
    [Symbol.dispose]: () => db.close(),
  };
}
