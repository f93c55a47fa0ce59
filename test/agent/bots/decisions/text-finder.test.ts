// Texts in a text: the same places as looking for each by itself.

import fc from "fast-check";
import { expect, test } from "vitest";
import { TextFinder } from "../../../../src/agent/bots/decisions/text-finder.ts";

function found(texts: readonly string[], text: string): ReadonlySet<number> {
  const numbers = new Set<number>();
  new TextFinder(texts).find(text, (no) => numbers.add(no));
  return numbers;
}

// Of few characters texts share their beginnings and ends; of many, a state leads to more than are listed.
test.each([
  [["a", "b", "c"], 12],
  [["a", "b", "c", "d", "e", "f", "g", "h"], 80],
])("what includes finds is found, and nothing else (%s)", (chars, textsMax) => {
  const part = fc.string({ unit: fc.constantFrom(...chars), minLength: 1, maxLength: 5 });
  const text = fc.string({ unit: fc.constantFrom(...chars, "é", "z"), maxLength: 40 });
  fc.assert(
    fc.property(fc.array(part, { maxLength: textsMax }), text, (texts, whole) => {
      const wanted = texts.flatMap((one, no) => (whole.includes(one) ? [no] : []));
      expect(found(texts, whole)).toEqual(new Set(wanted));
    }),
    { numRuns: 500 },
  );
});

test("empty texts and texts beyond ASCII are never found", () => {
  expect(found(["", "é", "a"], "éa")).toEqual(new Set([2]));
});
