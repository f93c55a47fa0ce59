// The guard at the door of the cache: whatever it cannot know counts as matching, for what is not stored is never stale.

import { describe, expect, test } from "vitest";
import { Guard } from "../../../../src/agent/cache/index/guard.ts";

const entry = { kind: "generated", path: "/news/today", query: "", mime: "text/html" } as const;
/** Match nothing. */
const others = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, no) => `path:other${no}`);
const matching = "path:news";

describe("a pattern that cannot be evaluated counts as matching", () => {
  test.each(['"', "AND", "nosuchcolumn:x", "NEAR(", ""])("%j", (pattern) => {
    using guard = new Guard();
    expect(guard.firstMatch(entry, [["path:other"], [pattern]])).toBe(1);
    // And does no harm to those that follow.
    expect(guard.firstMatch(entry, [["path:other"], [matching]])).toBe(1);
    expect(guard.firstMatch(entry, [["path:other"]])).toBe(-1);
  });
});

describe("evaluations for one response are bounded", () => {
  test("a thousand are made", () => {
    using guard = new Guard();
    expect(guard.firstMatch(entry, [others(1_000)])).toBe(-1);
    expect(guard.firstMatch(entry, [others(600), others(400)])).toBe(-1);
    expect(guard.firstMatch(entry, [others(999), [matching]])).toBe(1);
  });

  test("the one after that counts as matching, whatever it says", () => {
    using guard = new Guard();
    expect(guard.firstMatch(entry, [others(1_001)])).toBe(0);
    expect(guard.firstMatch(entry, [others(1_000), ["path:other"]])).toBe(1);
    expect(guard.firstMatch(entry, [others(600), others(400), [], ["path:other"]])).toBe(3);
    // The bound is one response's.
    expect(guard.firstMatch(entry, [["path:other"]])).toBe(-1);
  });
});

test("the first list that matches is told, and no entry remains for the next", () => {
  using guard = new Guard();
  expect(guard.firstMatch(entry, [])).toBe(-1);
  expect(guard.firstMatch(entry, [[], ["path:x", matching], [matching]])).toBe(1);
  expect(guard.firstMatch({ ...entry, path: "/other" }, [[matching]])).toBe(-1);
});
