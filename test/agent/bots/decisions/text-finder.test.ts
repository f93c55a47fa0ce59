// Texts in a text: the same places as looking for each by itself.

import fc from "fast-check";
import { expect, test } from "vitest";
import { TextFinder } from "../../../../src/agent/bots/decisions/text-finder.ts";

function found(texts: readonly string[], text: string): ReadonlySet<number> {
  const numbers = new Set<number>();
  new TextFinder(texts).find(text, (no) => numbers.add(no));
  return numbers;
}

test("what includes finds is found, and nothing else", () => {
  const part = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 5 });
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "é", "z"), maxLength: 40 });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), text, (texts, whole) => {
      const wanted = texts.flatMap((one, no) => (whole.includes(one) ? [no] : []));
      expect(found(texts, whole)).toEqual(new Set(wanted));
    }),
    { numRuns: 500 },
  );
});

test("empty texts and texts beyond ASCII are never found", () => {
  expect(found(["", "é", "a"], "éa")).toEqual(new Set([2]));
});
