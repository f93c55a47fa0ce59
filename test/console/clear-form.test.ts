// What the form of a clear makes.

import { expect, test } from "vitest";
import { bodyOf, kinds, linesOf, type ClearKind } from "../../src/console/clear-form.ts";

test("lines without blanks around them, and no empty ones", () => {
  expect(linesOf(" /a \r\n\n\t\n/b")).toEqual(["/a", "/b"]);
});

test.each<readonly [ClearKind, string]>([
  ["urls", "urls"],
  ["prefixes", "prefixes"],
  ["tags", "tags"],
  ["hosts", "hosts"],
  ["pattern", "url_path_patterns"],
])("%s", (kind, field) => {
  expect(bodyOf(kind, "one\ntwo", false)).toEqual({ [field]: ["one", "two"] });
  expect(bodyOf(kind, "one", true)).toEqual({ [field]: ["one"], soft: true });
  expect(bodyOf(kind, " \n", true)).toBeUndefined();
});

test("everything needs no name", () => {
  expect(bodyOf("everything", "", false)).toEqual({ everything: true });
  expect(bodyOf("everything", "ignored", true)).toEqual({ everything: true, soft: true });
});

test("every kind has a title of its own", () => {
  const titles = Object.values(kinds).map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
});
