// What is refused before SQLite is asked, and why; and that the text of the index is the same for all ways to write a path.

import { describe, expect, test } from "vitest";
import { indexedText } from "../../src/core/index-schema.ts";
import { patternFault } from "../../src/core/pattern-budget.ts";

const times = (n: number, text: string, joint = " OR "): string =>
  Array.from({ length: n }, () => text).join(joint);

test.each([
  "path:blog",
  'path:^"blog post xend"',
  'mime:"image/png" AND kind:static',
  "{path query}:shop*",
  "path : sh* NOT query:x",
  '"say ""hello"""',
  'NEAR("a b" cd, 10)',
  "路径* OR é2*",
  times(64, "word"),
  times(16, "ab*"),
  `${"(".repeat(16)}a${")".repeat(16)}`,
  "a".repeat(4_096),
])("%j is within the budget", (pattern) => {
  expect(patternFault(pattern)).toBe(undefined);
});

test.each([
  ["a".repeat(4_097), "4097 characters"],
  ["a\0b", "NUL"],
  ["*", "begins with *"],
  [" *id", "begins with *"],
  ["", "no word"],
  ["   ", "no word"],
  ['"/"', "no word"],
  ['"" OR "-"', "no word"],
  ["path: OR mime:", "no word"],
  [times(65, "word"), "65 words"],
  [`"${times(65, "a", "/")}"`, "65 words"],
  ["a*", "prefix a*"],
  ['"blog p"*', "prefix p*"],
  ['"/" *', "no word"],
  ['x OR "/" *', "prefix *"],
  ["路*", "prefix 路*"],
  [times(17, "ab*"), "17 prefixes"],
  [`${"(".repeat(17)}a${")".repeat(17)}`, "17 deep"],
])("%j is refused", (pattern, reason) => {
  expect(patternFault(pattern)).toContain(reason);
});

test("the pattern that blocked FTS5 for 27 s is refused at once", () => {
  const letters = Array.from("abcdefghijklmnopqrstuvwxyz0123456789")
    .map((letter) => `${letter}*`)
    .join(" OR ");
  const started = performance.now();
  expect(patternFault(times(30, `(${letters})`, " AND "))).toBeDefined();
  expect(performance.now() - started).toBeLessThan(10);
});

describe("the text of the index", () => {
  const pathText = (path: string, kind: "static" | "generated" = "generated"): string =>
    indexedText({ kind, path, query: "", mime: "" })[0];

  test.each([
    ["/caf%C3%A9", "/café xend"],
    ["/caf%c3%a9", "/café xend"],
    ["/cafe%CC%81", "/café xend"],
    ["/caf%E9/%41", "/caf%E9/A xend"],
    ["/100%", "/100% xend"],
    ["/", "/ xend"],
  ])("of %s is %j", (path, text) => {
    expect(pathText(path)).toBe(text);
  });

  test("of a static path is as it is: it was decoded before", () => {
    expect(pathText("a%41/cafe\u0301", "static")).toBe("a%41/café xend");
  });

  test("has query, mime and kind in their columns", () => {
    expect(
      indexedText({ kind: "generated", path: "/", query: "q=%20%C3%A9", mime: "text/html" }),
    ).toEqual(["/ xend", "q= é", "text/html", "generated"]);
  });
});
