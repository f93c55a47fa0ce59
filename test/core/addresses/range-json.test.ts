// A JSON array of addresses in pieces: the same as JSON.parse of the whole, wherever it is cut, and refused where that refuses it.

import fc from "fast-check";
import { expect, test } from "vitest";
import { RangeJsonReader } from "../../../src/core/addresses/range-json.ts";
import { ListFormFault } from "../../../src/core/addresses/range-list.ts";

function readAll(pieces: readonly string[]) {
  const reader = new RangeJsonReader();
  const parts = [...pieces.map((piece) => reader.read(piece)), reader.end()];
  return {
    texts: parts.flatMap(({ ranges }) => ranges.map(({ text }) => text)),
    faults: parts.flatMap(({ faults }) => faults.map(({ line }) => line)),
  };
}

const anItem = fc.constantFrom(
  "192.0.2.7",
  " 192.0.2.7 ",
  "198.51.100.0/24",
  "2001:db8::/32",
  "nonsense",
  "",
  'a"b\\',
  "192.0.2.7\u00e9",
);

test("wherever it is cut, it is what JSON.parse reads", () => {
  fc.assert(
    fc.property(
      fc.array(anItem, { maxLength: 8 }),
      fc.constantFrom(0, 1, 2),
      fc.array(fc.nat(200), { maxLength: 5 }),
      (items, indent, cuts) => {
        const text = JSON.stringify(items, null, indent);
        const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].toSorted(
          (a, b) => a - b,
        );
        const pieces = places.slice(1).map((to, at) => text.slice(places[at], to));
        const good = new Set(["192.0.2.7", "198.51.100.0/24", "2001:db8::/32"]);
        expect(readAll(pieces)).toEqual({
          texts: items.map((one) => one.trim()).filter((one) => good.has(one)),
          faults: items.flatMap((one, at) => (good.has(one.trim()) ? [] : [at + 1])),
        });
      },
    ),
    { numRuns: 500 },
  );
});

test.each([
  "",
  "[",
  '["192.0.2.7"',
  '["192.0.2.7",',
  '["192.0.2.7",]',
  '[,"192.0.2.7"]',
  '["192.0.2.7" "192.0.2.8"]',
  '["192.0.2.7"] x',
  "[1]",
  "{}",
  "null",
  '"192.0.2.7"',
  '[["192.0.2.7"]]',
  '["\\x"]',
  `["${"1".repeat(200)}`,
])("%s is refused", (text) => {
  expect(() => readAll([text])).toThrow(ListFormFault);
});

test("the refusal says where", () => {
  const reader = new RangeJsonReader();
  reader.read('["192.0.2.7", ');
  expect(() => reader.read(" 17]")).toThrow(
    'is no JSON array of texts: "1" where a text begins, at character 15',
  );
});
