// The guard at the door of the cache: whatever it cannot know counts as matching, for what is not stored is never stale.

import { describe, expect, test } from "vitest";
import type { IndexedEntry } from "../../../../src/core/patterns/index-schema.ts";
import { Guard } from "../../../../src/agent/cache/index/guard.ts";

const entry = { kind: "generated", path: "/news/today", query: "", mime: "text/html" } as const;
/** Match nothing. */
const others = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, no) => `path:other${no}`);
const matching = "path:news";

/** Asks for the first of these clears, each of one list. */
const firstOf = (guard: Guard, of: IndexedEntry, lists: readonly (readonly string[])[]): number =>
  guard.firstMatch(
    of,
    lists.map((list) => [list]),
  );

describe("a pattern that cannot be evaluated counts as matching", () => {
  test.each(['"', "AND", "nosuchcolumn:x", "NEAR(", ""])("%j", (pattern) => {
    using guard = new Guard();
    expect(firstOf(guard, entry, [["path:other"], [pattern]])).toBe(1);
    // And does no harm to those that follow.
    expect(firstOf(guard, entry, [["path:other"], [matching]])).toBe(1);
    expect(firstOf(guard, entry, [["path:other"]])).toBe(-1);
  });
});

describe("evaluations for one response are bounded", () => {
  test("a thousand are made", () => {
    using guard = new Guard();
    expect(firstOf(guard, entry, [others(1_000)])).toBe(-1);
    expect(firstOf(guard, entry, [others(600), others(400)])).toBe(-1);
    expect(firstOf(guard, entry, [others(999), [matching]])).toBe(1);
  });

  test("the one after that counts as matching, whatever it says", () => {
    using guard = new Guard();
    expect(firstOf(guard, entry, [others(1_001)])).toBe(0);
    expect(firstOf(guard, entry, [others(1_000), ["path:other"]])).toBe(1);
    expect(firstOf(guard, entry, [others(600), others(400), [], ["path:other"]])).toBe(3);
    // The bound is one response's.
    expect(firstOf(guard, entry, [["path:other"]])).toBe(-1);
  });
});

test("the first list that matches is told, and no entry remains for the next", () => {
  using guard = new Guard();
  expect(firstOf(guard, entry, [])).toBe(-1);
  expect(firstOf(guard, entry, [[], ["path:x", matching], [matching]])).toBe(1);
  expect(firstOf(guard, { ...entry, path: "/other" }, [[matching]])).toBe(-1);
});

test("a clear has several lists, each asked with all that it holds", () => {
  using guard = new Guard();
  const exact = "url:z2fnewsz2ftoday";
  expect(guard.firstMatch(entry, [[], [["path:x"], [exact]]])).toBe(1);
  expect(guard.firstMatch(entry, [[["url:z2fnews", "path:x"], ["url:z2fnewz2f*"]]])).toBe(-1);
});

test("a thousand exact words cost no evaluation, whatever is beside them", () => {
  using guard = new Guard();
  const urls = Array.from({ length: 5_000 }, (_, no) => `url:z2fnewsz2f${no}`);
  expect(guard.firstMatch(entry, [[urls], [["path:x"]]])).toBe(-1);
  expect(guard.firstMatch(entry, [[urls], [[...urls, "url:z2fnewsz2f*"]]])).toBe(1);
});
