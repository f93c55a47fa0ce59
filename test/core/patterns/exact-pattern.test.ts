// Exact patterns are judged as FTS5 judges them, over the same text.

import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { openSqlite } from "../../../src/base/sqlite.ts";
import { exactWord } from "../../../src/core/patterns/exact-word.ts";
import { ExactPatterns } from "../../../src/core/patterns/exact-pattern.ts";
import {
  createTextIndexSql,
  indexedText,
  insertTextSql,
  type IndexedEntry,
} from "../../../src/core/patterns/index-schema.ts";

const db = openSqlite(":memory:", { sync: "normal" });
db.exec(createTextIndexSql("candidate"));
afterAll(() => db.close());

function ftsMatches(entry: IndexedEntry, pattern: string): boolean {
  db.exec("BEGIN");
  db.prepare(insertTextSql("candidate")).run(1, ...indexedText(entry));
  const found = db.prepare("SELECT 1 FROM candidate WHERE candidate MATCH ?").get(pattern);
  db.exec("ROLLBACK");
  return found !== undefined;
}

const part = fc.constantFrom("a", "ab", "A", "é", "z", "x1", "b-c", "%C3%A9", "a.b", "");
const path = fc.array(part, { minLength: 1, maxLength: 2 }).map((parts) => `/${parts.join("/")}`);
const query = fc.array(part, { maxLength: 2 }).map((parts) => parts.join("&"));
const entryOf = fc.record({
  kind: fc.constantFrom("static" as const, "generated" as const),
  path,
  query,
  mime: fc.constant("text/html"),
});
const entry = entryOf.map((one): IndexedEntry =>
  one.kind === "static" ? { ...one, path: one.path.slice(1), query: "" } : one,
);
const column = fc.constantFrom("url", "dir", "ext", "param");
const text = fc.oneof(
  path,
  query,
  fc.tuple(path, query).map(([p, q]) => `${p}?${q}`),
  part,
);
const kind = fc.constantFrom("", "", "kind:static ", "kind:generated ");
const pattern = fc
  .tuple(kind, column, text, fc.boolean(), fc.nat(2))
  .map(([of, name, word, isOpen, cut]) => {
    const exact = exactWord(word);
    return `${of}${name}:${isOpen ? exact.slice(0, exact.length - cut) : exact}${isOpen ? "*" : ""}`;
  })
  .filter((one) => !/:\*?$/.test(one));

test("a pattern of one exact word matches what FTS5 matches", () => {
  let matched = 0;
  fc.assert(
    fc.property(entry, fc.array(pattern, { minLength: 1, maxLength: 6 }), (of, patterns) => {
      const exact = new ExactPatterns(patterns);
      expect(exact.rest).toEqual([]);
      const isMatch = patterns.some((one) => ftsMatches(of, one));
      if (isMatch) matched++;
      expect(exact.matches(indexedText(of))).toBe(isMatch);
    }),
    { numRuns: 4_000 },
  );
  expect(matched).toBeGreaterThan(100);
});

test.each([
  "path:a",
  "url:z2fA",
  "url:z2fa OR url:z2fb",
  'url:"z2fa"',
  "^url:z2fa",
  "url:z2fa z2fb",
  "-url:z2fa",
  "kind:static",
  "kind:other url:z2fa",
  "mime:html",
])("is left to FTS5: %s", (other) => {
  expect(new ExactPatterns([other, "url:z2fa"]).rest).toEqual([other]);
});

test("a word that FTS5 would cut is left to FTS5", () => {
  const long = `url:${"a".repeat(32_768)}`;
  expect(new ExactPatterns([long]).rest).toHaveLength(1);
});
