// The column `tag` came later: what does not name it matches what it matched without it.

import { describe, expect, test } from "vitest";
import { openPatternCheck } from "../../../src/base/pattern-check.ts";
import { ftsQuery, namesTags } from "../../../src/core/patterns/pattern-query.ts";
import { parsePattern } from "../../../src/core/patterns/pattern-grammar.ts";
import { entryOf, TextIndex } from "../../support/text-index.ts";
import { patternNo, patternKinds } from "../../support/cache-model-words.ts";

const urls = [
  "/",
  "/news",
  "/news/a.png?page=2",
  "/blog/a",
  "file css/news.css",
  "/tag",
  "/static",
];
const plain = urls.map(entryOf);
/** Words of paths, media types, kinds and columns as tags. */
const tagged = urls.map((url) => entryOf(`${url} [news, a, png, blog, static, html, tag, xend]`));

test.each([
  "news",
  "news OR blog",
  '"news a"',
  "a NOT news",
  "-path: news",
  "{path query}: (news OR a)",
  "-{path kind}: (news OR png)",
  "NEAR(news a)",
  "^news",
  "ne*",
  "xend",
  "html",
  "tag",
  '"tag"',
  "path:tag",
  "url:z2fnews",
  "kind:static",
  "static OR generated",
])("%s matches the same with tags as without", (pattern) => {
  using without = new TextIndex(plain);
  using withTags = new TextIndex(tagged);
  expect(withTags.matches(pattern)).toEqual(without.matches(pattern));
  expect(namesTags(pattern)).toBe(false);
});

test("so do the patterns of the model check, of which each is valid", () => {
  using without = new TextIndex(plain);
  using withTags = new TextIndex(tagged);
  using check = openPatternCheck();
  for (let no = 0; no < patternKinds; no += 7) {
    const { fts } = patternNo(no);
    expect(check.check(fts)).toBeUndefined();
    if (fts.includes("tag:")) continue; // What it asks for is there in one of the two alone.
    expect(withTags.matches(fts), fts).toEqual(without.matches(fts));
  }
});

describe("a pattern that names it looks there", () => {
  test.each([
    ["tag:news", [0, 1]],
    ["TAG:news", [0, 1]],
    ['"tag":news', [0, 1]],
    ["tag : ne*", [0, 1]],
    ["{path tag}: news", [0, 1, 2]],
    ["tag:news AND path:a", [1]],
    ["path:a NOT tag:news", [3]],
    ["tag:(news OR blog)", [0, 1, 4]],
    ["tag:productz2d7", [4]],
  ])("%s", (pattern, found) => {
    const entries = ["/x [news]", "/a [news]", "/news", "/a", "/y [blog, product-7]"];
    using index = new TextIndex(entries.map(entryOf));
    using check = openPatternCheck();
    expect(check.check(pattern)).toBeUndefined();
    expect(namesTags(pattern)).toBe(true);
    expect(index.matches(pattern)).toEqual(found);
  });
});

test.each([
  ["tag:product-7", "tag:productz2d7"],
  ["tag:News", "tag:z4eews"],
  ["tag:caf\u00e9", "tag:cafzc3za9"],
])("%s is refused, and %s was meant", (pattern, meant) => {
  using check = openPatternCheck();
  expect(check.check(pattern)?.suggestion).toBe(meant);
  expect(check.check(meant)).toBeUndefined();
});

test("what is nested as deeply as may be is within the limits of FTS5 with the filter before it", () => {
  using index = new TextIndex(plain);
  for (let depth = 1; depth <= 16; depth++)
    for (const [open, close] of [
      ["(", ")"],
      ["a AND (", ")"],
      ["a OR b AND c NOT (", ")"],
      ["path : (", ")"],
      ["a OR {path query} : (", ")"],
    ] as const) {
      const pattern = `${open.repeat(depth)}news${close.repeat(depth)}`;
      if (parsePattern(pattern).kind === "valid")
        expect(() => index.matches(pattern)).not.toThrow();
      expect(ftsQuery(pattern)).toBe(`- tag : (${pattern})`);
    }
});
