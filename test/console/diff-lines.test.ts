// Differences of texts: as few lines as there can be, and what is far from all of them is cut out.

import fc from "fast-check";
import { expect, test } from "vitest";
import { diffLines } from "../../src/console/diff-lines.ts";

function commonLength(a: readonly string[], b: readonly string[]): number {
  const [first, ...rest] = a;
  if (first === undefined) return 0;
  const found = b.indexOf(first);
  const without = commonLength(rest, b);
  return found < 0 ? without : Math.max(without, 1 + commonLength(rest, b.slice(found + 1)));
}

const text = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 7 });

test("removed and added are as few as can be, and in the order of their texts", () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const found = diffLines(a.join("\n"), b.join("\n"));
      const of = (kind: string): number => found.filter((line) => line.kind === kind).length;
      const common = commonLength(a, b);
      expect([of("removed"), of("added")]).toEqual([a.length - common, b.length - common]);
    }),
  );
});

test("where nothing is cut, both texts are in it", () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const found = diffLines(a.join("\n"), b.join("\n"));
      fc.pre(found.every(({ kind }) => kind !== "cut"));
      const without = (kind: string): readonly string[] =>
        found.filter((line) => line.kind !== kind).map((line) => line.text);
      expect(without("added")).toEqual(a);
      expect(without("removed")).toEqual(b);
    }),
  );
});

test("three lines on each side of a difference stay", () => {
  const lines = Array.from({ length: 20 }, (_, no) => `line ${no}`);
  const found = diffLines(lines.join("\n"), lines.with(10, "other").join("\n"));
  expect(found.map((line) => line.text)).toEqual([
    "…",
    ...lines.slice(7, 10),
    "line 10",
    "other",
    ...lines.slice(11, 14),
    "…",
  ]);
});

test("the same text twice, nothing, and all of it new", () => {
  expect(diffLines("a\nb", "a\nb")).toEqual([{ kind: "cut", text: "…" }]);
  expect(diffLines("", "")).toEqual([]);
  expect(diffLines("", "a")).toEqual([{ kind: "added", text: "a" }]);
  expect(diffLines("a", "")).toEqual([{ kind: "removed", text: "a" }]);
});

test("texts too long for the table are shown one after the other", () => {
  const long = Array.from({ length: 2_001 }, (_, no) => String(no)).join("\n");
  const found = diffLines(long, long);
  expect(found.slice(0, 2_001).every(({ kind }) => kind === "removed")).toBe(true);
  expect(found.slice(2_001).every(({ kind }) => kind === "added")).toBe(true);
  expect(found).toHaveLength(4_002);
});
