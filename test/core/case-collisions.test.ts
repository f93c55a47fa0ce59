// Names that differ only in case, on their own and below each other.

import { expect, test } from "vitest";
import { caseCollisions, describeCollision } from "../../src/core/case-collisions.ts";

test.each<[name: string, paths: readonly string[], collisions: readonly (readonly string[])[]]>([
  ["none", ["a", "b/a", "c/a", "B2"], []],
  ["two files", ["a/x", "a/X"], [["a/x", "a/X"]]],
  ["the capital one first", ["X", "x"], [["x", "X"]]],
  [
    "three of one name",
    ["Ab", "aB", "ab"],
    [
      ["ab", "Ab"],
      ["ab", "aB"],
    ],
  ],
  ["two capitals, no small one", ["Ab", "aB"], [["Ab", "aB"]]],
  ["directories, told once", ["D/1", "d/1", "d/2", "D/2"], [["d", "D"]]],
  ["a file and a directory", ["readme", "README/x"], [["readme", "README"]]],
  ["beyond ASCII", ["Ünï", "ünï"], [["ünï", "Ünï"]]],
  [
    "a file below one of two such directories",
    ["D/x", "d/x", "d/X"],
    [
      ["d", "D"],
      ["d/x", "d/X"],
    ],
  ],
])("%s", (_, paths, collisions) => {
  expect(caseCollisions(paths)).toEqual(collisions);
});

test("what is one form of Unicode and another, or sharp s and its two letters, is no collision", () => {
  expect(caseCollisions(["caf\u00e9", "cafe\u0301", "stra\u00dfe", "strasse"])).toEqual([]);
});

test("a collision of long paths is told briefly", () => {
  const text = describeCollision([`${"a".repeat(4_000)}/x`, `${"a".repeat(4_000)}/X`]);
  expect(text).toContain("differ only in case");
  expect(text.length).toBeLessThan(600);
});
