// What a mistyped name is taken for.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { distanceWithin, nearest } from "../../src/core/nearest.ts";

const keys = ["views_dir", "index", "single_page", "ttl_s", "urls", "bypass", "query", "max_age_s"];

test.each([
  ["views_dri", "views_dir"], // Swapped.
  ["viewsDir", "views_dir"], // Another convention.
  ["single-page", "single_page"],
  ["indexes", "index"],
  ["ttl", "ttl_s"],
  ["url", "urls"],
  ["bypas", "bypass"],
  ["max_age", "max_age_s"],
  ["QUERY", "query"],
  ["compression", undefined],
  ["", undefined],
  ["x", undefined],
  ["a".repeat(300), undefined],
])("%s is taken for %s", (text, meant) => {
  expect(nearest(text, keys)).toBe(meant);
});

test("the nearest wins, the first of equals", () => {
  expect(nearest("image", ["imaged", "images"])).toBe("imaged");
  expect(nearest("timeouts", ["timeout_ms", "timeout_s"])).toBe("timeout_s");
});

/** By the definition, without a limit and without a table. */
function slowDistance(a: string, b: string): number {
  if (a === "" || b === "") return a.length + b.length;
  const least = [
    slowDistance(a.slice(1), b) + 1,
    slowDistance(a, b.slice(1)) + 1,
    slowDistance(a.slice(1), b.slice(1)) + (a[0] === b[0] ? 0 : 1),
  ];
  if (a.length > 1 && b.length > 1 && a[0] === b[1] && a[1] === b[0]) {
    least.push(slowDistance(a.slice(2), b.slice(2)) + 1);
  }
  return Math.min(...least);
}

test("the distance is the one of the definition, or undefined beyond the limit", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 5 });
  fc.assert(
    fc.property(word, word, fc.nat(5), (a, b, limit) => {
      const distance = slowDistance(a, b);
      expect(distanceWithin(a, b, limit)).toBe(distance <= limit ? distance : undefined);
    }),
  );
});
