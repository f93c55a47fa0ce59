// The verdict on a pattern is SQLite's own, behind the budget.

import { afterAll, expect, test } from "vitest";
import { openPatternCheck } from "../../src/base/pattern-check.ts";

const patterns = openPatternCheck();
afterAll(() => patterns[Symbol.dispose]());

test.each([
  "path:blog",
  'path:^"blog post xend" AND kind:generated',
  "{path mime}:html NOT query:x",
  "-path:html",
  'NEAR("a b" cd, 10)',
  "cafe\u0301",
])("%j is valid", (pattern) => {
  expect(patterns.check(pattern)).toBe(undefined);
});

test.each([
  ["image/png", 'is no FTS5 query: syntax error near "/"'],
  ["post-1", "is no FTS5 query: no such column: 1"],
  ["title:x", "is no FTS5 query: no such column: title"],
  ["domain:x", "no such column"],
  ["rowid:1", "no such column"],
  ["probe:x", "no such column"],
  ["NOT x", "syntax error"],
  ['"open', "unterminated string"],
  ["(a", "syntax error"],
  ["a AND", "syntax error"],
  ["*id", "begins with *"],
  ['"/"', "has no word"],
  [Array.from({ length: 65 }, () => "w").join(" "), "65 words"],
])("%j is refused", (pattern, reason) => {
  expect(patterns.check(pattern)).toContain(reason);
});
