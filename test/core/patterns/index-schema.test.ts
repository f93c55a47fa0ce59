// The text of the index is the same for all ways to write a path, and nothing in a path is taken for its end.

import { describe, expect, test } from "vitest";
import {
  createTextIndexSql,
  indexColumns,
  indexedText,
  insertTextSql,
  urlOf,
  wordsOf,
  type IndexedEntry,
} from "../../../src/core/patterns/index-schema.ts";
import { entryOf, TextIndex } from "../../support/text-index.ts";

describe("the words of a path", () => {
  test.each([
    ["/caf%C3%A9", "/café xend"],
    ["/caf%c3%a9", "/café xend"],
    ["/cafe%CC%81", "/café xend"],
    ["/caf%E9/%41", "/caf%E9/A xend"],
    ["/100%", "/100% xend"],
    ["/", "/ xend"],
    ["/xend", "/xxend xend"],
    ["/XEnd/xxend.x", "/xXEnd/xxxend.x xend"],
    ["/xends/axend/_xend_", "/xends/axend/_xxend_ xend"],
    ["file a%41/cafe\u0301", "a%41/café xend"],
  ])("of %s are %j", (entry, text) => {
    expect(indexedText(entryOf(entry))[0]).toBe(text);
  });

  test.each([
    "/xend",
    "/a/xend/b",
    "/xend\u0301/b",
    "/\u{1f600}xend",
    "/\u0305xend",
    "/x%65nd",
    "/\u19b0xend",
  ])("%s has one end", (path) => {
    using index = new TextIndex([entryOf(path), entryOf("/")]);
    expect(index.matches("path:^xend")).toEqual([1]);
    expect(index.matches('path:"xend xend"')).toEqual([]);
  });
});

test.each<[entry: string, ...columns: string[]]>([
  ["/", "z2f", "z2f", "", ""],
  ["/blog", "z2fblog", "z2f", "", ""],
  ["/a.b/c?d=e.f/g", "z2faz2ebz2fcz3fdz3dez2efz2fg", "z2faz2ebz2f", "", "dz3dez2efz2fg"],
  ["/a.tar.gz", "z2faz2etarz2egz7a", "z2f", "gz7a", ""],
  ["/.well-known/a.", "z2fz2ewellz2dknownz2faz2e", "z2fz2ewellz2dknownz2f", "", ""],
  ["file img/A.PNG", "z2fimgz2fz41z2ez50z4ez47", "z2fimgz2f", "z50z4ez47", ""],
  ["/?b&a=1&&b", "z2fz3fbz26az3d1z26z26b", "z2f", "", "b az3d1  b"],
])("%s has url %s, dir %s, ext %j, param %j", (entry, ...exact) => {
  expect(indexedText(entryOf(entry)).slice(4)).toEqual([...exact, ""]);
});

test("the columns stand in their order, in the table, the insert and the text", () => {
  const entry: IndexedEntry = {
    kind: "generated",
    path: "/p",
    query: "q=%20%C3%A9",
    mime: "text/html",
  };
  expect(indexedText(entry).slice(0, 4)).toEqual(["/p xend", "q= é", "text/html", "generated"]);
  expect(indexColumns.join(", ")).toBe("path, query, mime, kind, url, dir, ext, param, tag");
  expect(createTextIndexSql("t")).toContain(`fts5(${indexColumns.join(", ")},`);
  expect(insertTextSql("t")).toBe(
    "INSERT INTO t (rowid, path, query, mime, kind, url, dir, ext, param, tag) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  expect(urlOf(entry)).toBe("/p?q=%20%C3%A9");
});

test("words are counted as FTS5 counts them, or more", () => {
  expect(wordsOf("/blog/my-post_2.html路径é")).toEqual(["blog", "my", "post", "2", "html路径é"]);
  expect(wordsOf("a\u19b0b")).toEqual(["a", "b"]);
  expect(wordsOf("-/\u{1f600}")).toEqual([]);
});
