// One text, one word: nothing is folded, a beginning stays a beginning, and FTS5 sees one token whatever the bytes.

import fc from "fast-check";
import { expect, test } from "vitest";
import { exactWord } from "../../../src/core/patterns/exact-word.ts";
import { exactUrl, under } from "../../../src/core/patterns/pattern-recipes.ts";
import { TextIndex } from "../../support/text-index.ts";

test.each([
  ["/blog/A-1", "z2fblogz2fz41z2d1"],
  ["", ""],
  ["az09", "az7a09"],
  ["é", "zc3za9"],
  ["\u0000 ", "z00z20"],
  [Uint8Array.of(0xff, 0x61), "zffa"],
])("%j is %s", (text, word) => {
  expect(exactWord(text)).toBe(word);
});

/** Close to one another, so that a mistake shows. */
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "A", "z", "2", "f", "/", ".", "é", "路", "z2f") }),
  fc.string({ unit: "binary" }),
);

test("different texts have different words, and beginnings begin", () => {
  fc.assert(
    fc.property(text, text, (one, other) => {
      const [first, second] = [Buffer.from(one), Buffer.from(other)];
      expect(exactWord(one) === exactWord(other)).toBe(first.equals(second));
      expect(exactWord(first).startsWith(exactWord(second))).toBe(
        first.subarray(0, second.length).equals(second),
      );
      expect(exactWord(one)).toMatch(/^[a-z0-9]*$/);
    }),
  );
});

test("FTS5 finds each by its word, and by the beginning of its word, alone", () => {
  const texts = fc
    .sample(text, { numRuns: 300, seed: 5 })
    .map((one) => Buffer.from(one).toString());
  const paths = [...new Set(texts.map((one) => `/${one.replaceAll("?", "")}`))];
  using index = new TextIndex(
    paths.map((path) => ({ kind: "generated", path, query: "", mime: "" })),
  );
  for (const [at, path] of paths.entries()) {
    expect(index.matches(exactUrl(path))).toEqual([at]);
    const below = paths.flatMap((other, i) => (other.startsWith(path) ? [i] : []));
    expect(index.matches(under(path))).toEqual(below);
  }
});
