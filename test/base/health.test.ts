// Coded warnings: since when, renewed, settled, told apart by key.

import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";

test("raising again keeps since and renews the rest", () => {
  let minute = 0;
  const health = new Health(() => new Date(Date.UTC(2026, 0, 1, 0, minute++)));
  health.raise("spool_full", "warning", "5 ms", "Look.");
  health.raise("spool_full", "error", "500 ms", "Look now.");
  expect(health.list()).toEqual([
    {
      code: "spool_full",
      severity: "error",
      text: "500 ms",
      since: "2026-01-01T00:00:00.000Z",
      hint: "Look now.",
    },
  ]);
  health.settle("spool_full");
  expect(health.list()).toEqual([]);
  health.raise("spool_full", "warning", "7 ms", "Look.");
  expect(health.list()[0]?.since).not.toBe("2026-01-01T00:00:00.000Z");
});

test("several of one code are told apart by key", () => {
  const health = new Health(() => new Date(0));
  health.raise("viewset_failing", "warning", "a", "", "a.example");
  health.raise("viewset_failing", "warning", "b", "", "b.example");
  health.raise("viewset_failing", "warning", "all", "");
  health.settle("viewset_failing", "a.example");
  health.settle("viewset_failing", "c.example");
  expect(health.list().map(({ text }) => text)).toEqual(["b", "all"]);
});

test("all but some codes are settled at once", () => {
  const health = new Health(() => new Date(0));
  for (const key of ["a", "b"]) health.raise("viewset_failing", "warning", key, "", key);
  health.raise("settings_unknown", "warning", "c", "");
  health.settleAllBut(["settings_unknown"]);
  expect(health.list().map(({ code }) => code)).toEqual(["settings_unknown"]);
});
