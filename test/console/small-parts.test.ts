// Counts of a class of statuses, JSON with a field a line, and the path that somebody means who pastes a URL.

import { expect, test } from "vitest";
import { indented } from "../../src/console/json-text.ts";
import { pathMeant } from "../../src/console/logs-filter.ts";
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

test("a path is that of a URL, without its query", () => {
  expect(pathMeant("/a/b")).toBe("/a/b");
  expect(pathMeant("/a/b?c=1#d")).toBe("/a/b");
  expect(pathMeant("https://www.example.com/a?b")).toBe("/a");
  expect(pathMeant("https://www.example.com")).toBe("/");
  expect(pathMeant("")).toBe("");
});
