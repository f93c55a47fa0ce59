// Our validator and SQLite's parser say the same, and where they should not, the stricter one is heard.

import { afterAll, expect, test } from "vitest";
import { openPatternCheck } from "../../src/base/pattern-check.ts";
import { patternFault } from "../../src/core/patterns/pattern-fault.ts";
import { parsePattern } from "../../src/core/patterns/pattern-grammar.ts";
import { fuzzPatterns } from "../support/pattern-fuzz.ts";

const patterns = openPatternCheck();
afterAll(() => patterns[Symbol.dispose]());

test.each([
  "path:blog",
  'path:^"blog post xend" AND kind:generated',
  "{path mime}:html NOT query:x",
  "-path:html",
  'NEAR("a b" cd, 10)',
  "cafe\u0301",
  "url:z2fcssz2f*",
])("%j is valid", (pattern) => {
  expect(patterns.check(pattern)).toBe(undefined);
});

test.each([
  ["image/png", 'has "/"', 'syntax error near "/"'],
  ["post-1", "has -", "no such column: 1"],
  ["title:x", 'names a column "title"', "no such column: title"],
  ["rowid:1", 'names a column "rowid"', "no such column"],
  ["probe:x", 'names a column "probe"', "no such column"],
  ["NOT x", "has NOT", "syntax error"],
  ['"open', "not closed", "unterminated string"],
  ["(a", "not closed", "syntax error"],
  ["a AND", "ends", "syntax error"],
  ["*id", "has *", "syntax error"],
  ['"/"', "without a word", undefined],
  [Array.from({ length: 65 }, () => "w").join(" "), "64 words", undefined],
])("%j is refused", (pattern, ours, theirs) => {
  expect(patterns.check(pattern)?.message).toContain(ours);
  if (theirs === undefined) expect(patterns.refusedByFts5(pattern)).toBe(undefined);
  else expect(patterns.refusedByFts5(pattern)).toContain(theirs);
});

test("20,000 patterns have one verdict", () => {
  const counts = fuzzPatterns(20_000, 1, patterns);
  expect(counts.disagreements).toEqual([]);
  // A generator that makes one kind only would prove nothing.
  expect(counts.agreedAccepts).toBeGreaterThan(5_000);
  expect(counts.agreedRefusals).toBeGreaterThan(5_000);
  expect(counts.unwanted).toBeLessThan(counts.agreedAccepts / 2);
  expect(counts.notCompared).toBeLessThan(400);
});

test("what our parser takes is never too deep for SQLite's, which ends at 100 symbols", () => {
  const levels = ["(", "path:(", "a OR (", "a OR b AND c NOT (", "a OR b AND c NOT {path mime}:("];
  const leaves = [
    "a",
    "-{path mime}:b",
    "a {path}:NEAR(b c + d*, 5)",
    "^a + b*",
    "path:NEAR(c + d* e)",
  ];
  const mixed = levels.flatMap((one) => levels.map((other) => [one, other] as const));
  let deepest = 0;
  for (const [one, other] of mixed)
    for (const leaf of leaves)
      for (let depth = 1; depth <= 17; depth++) {
        const open = Array.from({ length: depth }, (_, i) => (i < depth - 2 ? one : other)).join(
          "",
        );
        const pattern = `${open}${leaf}${")".repeat(depth)}`;
        const ours = parsePattern(pattern);
        if (ours.kind === "valid") {
          deepest = Math.max(deepest, depth);
          expect(patterns.refusedByFts5(pattern), pattern).toBe(undefined);
        }
      }
  expect(deepest).toBe(16);
});

test("what FTS5 alone refuses is refused with its words", () => {
  const strict = (pattern: string) => (pattern.includes("a") ? "is no FTS5 query: odd" : undefined);
  expect(patternFault("b", strict)).toBe(undefined);
  expect(patternFault("ab", strict)).toEqual({
    position: 0,
    message: "is no FTS5 query: odd",
    suggestion: undefined,
  });
  expect(patternFault("a/b", strict)?.suggestion).toBe(undefined);
});
