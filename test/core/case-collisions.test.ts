// Names that differ only in case, on their own and below each other.

import { expect, test } from "vitest";
import {
  caseCollisions,
  describeCollision,
  directoryCharsMax,
} from "../../src/core/case-collisions.ts";

test.each<[name: string, paths: readonly string[], collisions: readonly (readonly string[])[]]>([
  ["none", ["a", "b/a", "c/a", "B2"], []],
  ["two files", ["a/x", "a/X"], [["a/x", "a/X"]]],
  ["the capital one first", ["X", "x"], [["x", "X"]]],
  [
    "three of one name",
    ["Ab", "aB", "ab"],
    [
      ["Ab", "aB"],
      ["ab", "Ab"],
    ],
  ],
  ["two capitals, no small one", ["Ab", "aB"], [["Ab", "aB"]]],
  ["directories, told once", ["D/1", "d/1", "d/2", "D/2"], [["d", "D"]]],
  ["a file and a directory", ["readme", "README/x"], [["readme", "README"]]],
  ["beyond ASCII", ["Ünï", "ünï"], [["ünï", "Ünï"]]],
  [
    "two sigmas, also at the end of a word",
    ["ΟΔΟΣ.html", "οδος.html"],
    [["ΟΔΟΣ.html", "οδος.html"]],
  ],
  ["two micro signs", ["\u00b5", "\u03bc"], [["\u03bc", "\u00b5"]]],
  ["sharp s and its capitals", ["STRASSE", "straße"], [["STRASSE", "straße"]]],
  ["a file and a directory of one name are another matter", ["DOCS", "DOCS/x"], []],
  [
    "a file below one of two such directories",
    ["D/x", "d/x", "d/X"],
    [
      ["d/x", "d/X"],
      ["d", "D"],
    ],
  ],
])("%s", (_, paths, collisions) => {
  expect(caseCollisions(paths)).toEqual(collisions);
});

test("what is one form of Unicode and another is no collision", () => {
  expect(caseCollisions(["caf\u00e9", "cafe\u0301"])).toEqual([]);
});

test("what a hostile list costs is bounded: directories without end make no answer, as many in a real tree do", () => {
  const deep = Array.from({ length: 400 }, (_, i) => `${i}/${"A/".repeat(2_040)}x`);
  expect(caseCollisions(deep)).toBeUndefined();
  const wide = Array.from(
    { length: 100_000 },
    (_, i) => `Docs/${i % 20_000}/reference/page${i}.html`,
  );
  expect(wide.join("").length).toBeLessThan(directoryCharsMax);
  expect(caseCollisions([...wide, "docs/x"])).toEqual([["docs", "Docs"]]);
  const names = Array.from({ length: 20 }, (_, bit) => (n: number) => ((n >> bit) & 1 ? "A" : "a"));
  const alike = Array.from({ length: 5_000 }, (_, n) => names.map((letter) => letter(n)).join(""));
  expect(caseCollisions(alike)).toHaveLength(1_000);
});

test("a collision of long paths is told briefly", () => {
  const text = describeCollision([`${"a".repeat(4_000)}/x`, `${"a".repeat(4_000)}/X`]);
  expect(text).toContain("differ only in case");
  expect(text.length).toBeLessThan(600);
});
