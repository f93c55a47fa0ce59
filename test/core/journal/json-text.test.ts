// The JSON scan agrees with JSON.parse on what is JSON, and tells the place of faults and repeated names.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { nestsDeeper, parseJsonText } from "../../../src/core/journal/json-text.ts";

const limits = { depthMax: 64, repeatedMax: 10 };

test.each([
  ["", 1, 1, /expected a value, found the end/],
  ["{", 1, 2, /name in double quotes, found the end/],
  ['{"a":1,}', 1, 8, /another element after the comma/],
  ["[1,]", 1, 4, /another element after the comma/],
  ['{\n  "a": 1\n  "b": 2\n}', 3, 3, /expected `,` or `}`, found `"`/],
  ['{"a" 1}', 1, 6, /expected `:`/],
  ["{'a': 1}", 1, 2, /name in double quotes, found `'`/],
  ["// no\n{}", 1, 1, /expected a value, found `\/`/],
  ["{} {}", 1, 4, /nothing may follow/],
  ["[01]", 1, 3, /expected `,`/],
  ["[1.]", 1, 3, /expected `,`/],
  ["[nul]", 1, 2, /expected a value/],
  ['"a\nb"', 1, 3, /U\+000A: write it as an escape/],
  ['"a\\x"', 1, 3, /unknown escape/],
  ['\r\n"abc', 2, 5, /ends within a string/],
  ["\uFEFF{}", 1, 1, /byte order mark/],
  ["[NaN]", 1, 2, /found `N`/],
])("%j fails at line %i, column %i", (text, line, column, message) => {
  const json = parseJsonText(text, limits);
  expect(json).toMatchObject({ ok: false, fault: { line, column } });
  expect(json.ok ? "" : json.fault.message).toMatch(message);
});

test("repeated names are found at every depth, however they are written", () => {
  const json = parseJsonText('{"a":[{"b":1,"b":2}],\n "\\u0061":3, "c":{"a":1}}', limits);
  expect(json).toEqual({
    ok: true,
    value: { a: 3, c: { a: 1 } },
    repeated: [
      { path: ["a", 0, "b"], line: 1, column: 14 },
      { path: ["a"], line: 2, column: 2 },
    ],
  });
});

test("`__proto__` is a name like any other", () => {
  const json = parseJsonText('{"__proto__":{"a":1},"__proto__":2}', limits);
  expect(json).toMatchObject({ ok: true, repeated: [{ path: ["__proto__"] }] });
  expect(Object.keys((json.ok && json.value) || {})).toEqual(["__proto__"]);
});

test.each([["["], ['{"a":'], ['[{"a":']])(
  "a million of %s is a fault, not a stack overflow",
  (open) => {
    expect(parseJsonText(open.repeat(1_000_000), limits)).toMatchObject({ ok: false });
  },
);

test.each([
  ["[[]]", 2, false],
  ["[[]]", 1, true],
  ['{"a":[{}]}', 3, false],
  ['{"a":[{}]}', 2, true],
  ["[],[],[]", 1, false],
  ['["[[["]', 1, false],
  ['["\\"[[["]', 1, false],
  ['["\\\\",[]]', 1, true],
  ["]]]][", 1, false],
  ['"[[[', 1, false],
  ["", 0, false],
])("%j nests deeper than %i levels: %j", (text, levels, isDeeper) => {
  expect(nestsDeeper(text, levels)).toBe(isDeeper);
});

test("what nests too deep for the parser nests deeper", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(5), (value, depthMax) => {
      const text = JSON.stringify(value);
      const isRefused = !parseJsonText(text, { depthMax, repeatedMax: 0 }).ok;
      expect(nestsDeeper(text, depthMax)).toBe(isRefused);
    }),
  );
});

test("depth is counted in lists and objects", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  expect(parseJsonText(nested(64), limits).ok).toBe(true);
  expect(parseJsonText(nested(65), limits)).toMatchObject({ ok: false, fault: { column: 65 } });
});

test("at most repeatedMax repeated names are kept", () => {
  const json = parseJsonText(`{${'"a":1,'.repeat(1_000)}"b":1}`, limits);
  expect(json).toMatchObject({ ok: true, repeated: { length: 10 } });
});

function parsed(text: string): unknown {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function agrees(text: string): void {
  const json = parseJsonText(text, { depthMax: 1_000, repeatedMax: 1 });
  expect(json.ok ? { value: json.value } : undefined).toEqual(parsed(text));
}

test("what JSON.parse accepts is accepted, with its value", () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(0, 1, "\t", "\r\n"), (text, space) =>
      agrees(JSON.stringify(JSON.parse(text), null, space)),
    ),
  );
});

test("what JSON.parse refuses is refused", () => {
  const garbled = fc.tuple(
    fc.json(),
    fc.nat(),
    fc.constantFrom("", ",", '"', "\\", "]", "}", ":", "0", "-", "e", ".", " ", "\u00A0", "\u0000"),
  );
  fc.assert(
    fc.property(garbled, ([text, at, put]) => {
      const cut = at % (text.length + 1);
      agrees(text.slice(0, cut) + put + text.slice(cut + 1));
      agrees(text.slice(0, cut) + put + text.slice(cut));
    }),
    { numRuns: 1_000 },
  );
});
