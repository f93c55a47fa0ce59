// One instance id in two processes: found by a boot that comes back after another took its place.

import { expect, test } from "vitest";
import { Duplicates } from "../../../src/central/agents/duplicates.ts";

test.each<readonly [string, readonly string[], boolean]>([
  ["a connection that broke", ["a", "a", "a"], false],
  ["restarts", ["a", "b", "c", "d"], false],
  ["two that take turns", ["a", "b", "a"], true],
  ["three that take turns", ["a", "b", "c", "a"], true],
  ["one that is restarted beside the other", ["a", "b", "c", "b"], true],
])("%s", (_, boots, isFound) => {
  const duplicates = new Duplicates();
  const found = boots.map((boot) => duplicates.greeted("1 x", boot, 0));
  expect(found.filter(Boolean).length).toBe(isFound ? 1 : 0);
  expect(duplicates.has("1 x")).toBe(isFound);
  expect(duplicates.has("1 y")).toBe(false);
});

test("it is over when they have not replaced each other for three minutes, and can be found again", () => {
  const duplicates = new Duplicates();
  for (const boot of ["a", "b", "a"]) duplicates.greeted("1 x", boot, 1_000);
  expect(duplicates.greeted("1 x", "b", 2_000)).toBe(false);
  expect(duplicates.count(182_000)).toBe(1);
  expect(duplicates.count(182_001)).toBe(0);
  expect(duplicates.greeted("1 x", "a", 300_000)).toBe(true);
  duplicates.gone("1 x");
  expect(duplicates.count(300_000)).toBe(0);
  expect(duplicates.greeted("1 x", "b", 300_000)).toBe(false);
});
