// Counts of a class of statuses, and JSON with a field a line.

import { expect, test } from "vitest";
import { indented } from "../../src/console/json-text.ts";
import { countInClass } from "../../src/console/status-class.ts";

test("statuses are counted by their first digit", () => {
  const counts = { "200": 7, "204": 1, "404": 3, "500": 2, "503": 4, other: 9 };
  expect(countInClass(counts, "2")).toBe(8);
  expect(countInClass(counts, "4")).toBe(3);
  expect(countInClass(counts, "5")).toBe(6);
  expect(countInClass(undefined, "5")).toBe(0);
});

test("what is no JSON stays as it is", () => {
  expect(indented('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
  expect(indented('{"a":')).toBe('{"a":');
});
