// Where in a JSON text a cursor is.

import fc from "fast-check";
import { expect, test } from "vitest";
import { keysAt, type JsonKey } from "../../src/console/json-place.ts";

/** The cursor stands where the bar is. */
function at(marked: string): readonly JsonKey[] {
  return keysAt(marked.replace("|", ""), marked.indexOf("|"));
}

test.each<readonly [string, readonly JsonKey[]]>([
  ["|", []],
  ["{|}", []],
  ['{"domains": |', ["domains"]],
  [
    '{"domains": {"www.example.com": {"backend": {"ur|',
    ["domains", "www.example.com", "backend", "ur"],
  ],
  ['{"a": 1, |"b": 2}', []],
  ['{"a": 1, "b": |2}', ["b"]],
  ['{"a": [1, {"b": |', ["a", 1, "b"]],
  ['{"a": [|]}', ["a", 0]],
  ['{"a": {"b": 1}, "c": |', ["c"]],
  ['{"a": "{[,:|', ["a"]],
  ['{"a\\"b": |', ['a"b']],
  ['{"a": "not ended\n, "b": |', ["b"]],
  ["]}|", []],
])("%s", (marked, keys) => {
  expect(at(marked)).toEqual(keys);
});

const marker = "\u0001here";

type Nest = (inner: unknown) => readonly [key: JsonKey, outer: unknown];

const inObject: fc.Arbitrary<Nest> = fc
  .tuple(fc.string(), fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 }))
  .filter(([key]) => key !== "__proto__")
  .map(([key, others]) => (inner) => [key, { ...others, [key]: inner }]);
const inArray: fc.Arbitrary<Nest> = fc
  .array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 })
  .map((before) => (inner) => [before.length, [...before, inner]]);

test("any place of any document, however it is indented", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(inObject, inArray)), fc.nat({ max: 4 }), (nests, indent) => {
      let document: unknown = marker;
      const keys: JsonKey[] = [];
      for (const nest of nests) {
        const [key, outer] = nest(document);
        document = outer;
        keys.unshift(key);
      }
      const text = JSON.stringify(document, null, indent);
      expect(keysAt(text, text.indexOf("here"))).toEqual(keys);
    }),
  );
});
