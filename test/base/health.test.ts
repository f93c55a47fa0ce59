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
      since: "2026-01-01T00:01:00.000Z",
      hint: "Look now.",
    },
  ]);
  health.settle("spool_full");
  expect(health.list()).toEqual([]);
  health.raise("spool_full", "warning", "7 ms", "Look.");
  expect(health.list()[0]?.since).not.toBe("2026-01-01T00:01:00.000Z");
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

const startMs = Date.UTC(2026, 0, 1, 12);
const at = (seconds: number): string => new Date(startMs + seconds * 1_000).toISOString();

/** A health that began at `at(0)`, with a clock that the test moves. */
function started(): { readonly health: Health; readonly move: (seconds: number) => void } {
  let nowMs = startMs;
  const health = new Health(() => new Date(nowMs));
  return { health, move: (seconds) => void (nowMs = startMs + seconds * 1_000) };
}

const beginnings = (health: Health): Readonly<Record<string, readonly (string | null)[]>> =>
  Object.fromEntries(
    health.told().map(({ code, since, not_before: notBefore }) => [code, [since, notBefore]]),
  );

test("what is found at a start began at some time before; what is found later, then; an event where it is raised", () => {
  const { health, move } = started();
  move(3);
  health.raise("disk_low", "warning", "", "");
  health.raise("cache_dropped", "info", "", "");
  move(40);
  health.raise("spool_full", "warning", "", "");
  expect(beginnings(health)).toEqual({
    disk_low: [at(3), null],
    cache_dropped: [at(3), at(3)],
    spool_full: [at(40), at(40)],
  });
});

test("what the process before knew: what goes on began then, what is new began since it was seen last", () => {
  const { health, move } = started();
  health.raise("state_newer", "info", "", "");
  health.raise("settings_unknown", "warning", "", "");
  const known = (id: string, since: number, notBefore: number | null = since) => ({
    id,
    since: at(since),
    notBefore: notBefore === null ? null : at(notBefore),
  });
  health.recall({
    seen: at(-2),
    warnings: [
      known("disk_low/", -600, null),
      known("origin_failing/a.example", -300),
      known("origin_failing/b.example", -300),
      known("cache_dropped/", -500),
      known("settings_unknown/", -900),
      known("central_unreachable/", -60),
    ],
  });
  move(3);
  health.raise("disk_low", "warning", "", "");
  health.raise("cache_dropped", "info", "", "");
  health.raise("spool_full", "warning", "", "");
  // It was over, and comes again.
  health.settle("central_unreachable");
  move(30);
  health.raise("central_unreachable", "warning", "", "");
  move(95);
  health.raise("origin_failing", "error", "", "", "a.example");
  expect(beginnings(health)).toEqual({
    state_newer: [at(0), at(0)],
    settings_unknown: [at(-900), at(-900)],
    disk_low: [at(-600), null],
    cache_dropped: [at(3), at(3)],
    spool_full: [at(3), at(-2)],
    central_unreachable: [at(30), at(30)],
    origin_failing: [at(-300), at(-300)],
  });
  // By now it would have been found if it had gone on.
  move(200);
  health.raise("origin_failing", "error", "", "", "b.example");
  expect(health.told().at(-1)).toMatchObject({ since: at(200), not_before: at(200) });
});

test("what is known of the process before is known for the next one, too, for as long as it may be found again", () => {
  const { health, move } = started();
  const before = { id: "central_unreachable/", since: at(-60), notBefore: at(-61) };
  const over = { id: "disk_low/", since: at(-60), notBefore: at(-61) };
  health.recall({ seen: at(-2), warnings: [before, over] });
  health.settle("disk_low");
  expect(health.known()).toEqual([before]);
  move(200);
  expect(health.known()).toEqual([]);
});

test("what is known to have begun at some time began then, whoever found it", () => {
  const { health, move } = started();
  move(50);
  health.raise("unclean_end", "warning", "", "", "", { since: at(-20), notBefore: at(-30) });
  expect(beginnings(health)).toEqual({ unclean_end: [at(-20), at(-30)] });
});

test("what is in force is known for the next process, and list() says what it said", () => {
  const { health } = started();
  health.raise("origin_failing", "error", "text", "hint", "a.example");
  expect(health.known()).toEqual([
    { id: "origin_failing/a.example", since: at(0), notBefore: null },
  ]);
  expect(health.list()).toEqual([
    { code: "origin_failing", severity: "error", text: "text", since: at(0), hint: "hint" },
  ]);
});

test("all but some codes are settled at once", () => {
  const health = new Health(() => new Date(0));
  for (const key of ["a", "b"]) health.raise("viewset_failing", "warning", key, "", key);
  health.raise("settings_unknown", "warning", "c", "");
  health.settleAllBut(["settings_unknown"]);
  expect(health.list().map(({ code }) => code)).toEqual(["settings_unknown"]);
});
