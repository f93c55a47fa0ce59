// What is opened in a text and not closed is found where it is opened.

import { expect, test } from "vitest";
import { unclosedIn } from "../../src/base/unclosed-yaml.ts";

test.each([
  ["proxies: [10.0.0.1, 10.0.0.2\n# one\n\n# two\nmetrics:\n  listen: x\n", "[", 1],
  ["a: 1\nlist: [\n  # one\n  1,\n# two\n  2\nb: { c: 1 }\n", "[", 2],
  ["a: 1\nmetrics: { listen: x\n# one\nb: 2\n", "{", 2],
  ['a:\n  b: "x\nc: 1\n', '"', 2],
  ["a: [1, 2]\nb: 'x\nc: 1\n", "'", 2],
  ["- a\n- [[1], [2, 3]\n- b\n", "[", 2],
  ["a: 1\nb: [\n1\n]\nc: 2\n", "[", 2], // What stands in it is not further in.
  ['"', '"', 1],
])("%j", (yaml, mark, line) => {
  expect(unclosedIn(yaml)).toEqual({ mark, line });
});

test.each([
  "a: [1, [2], { b: 'it''s', c: \"d\" }]\n",
  "a: [\n  1\n]\nb: 2\n",
  "a: it's a [ and a {\n# [ \"\nb: |\n  [ {\n",
  "",
])("all is closed in %j", (yaml) => {
  expect(unclosedIn(yaml)).toBeUndefined();
});
