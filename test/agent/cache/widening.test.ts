// A clear that cannot be matched clears more, never less: over budget, crashed matcher, damaged index.

import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { openPatternCheck } from "../../../src/base/pattern-check.ts";
import { Clearing } from "../../../src/agent/cache/clearing/clearing.ts";
import { IndexKeeper } from "../../../src/agent/cache/index/index-keeper.ts";
import { MatchProcess } from "../../../src/agent/cache/clearing/matcher-child.ts";
import { OpenIndex } from "../../../src/agent/cache/index/open-index.ts";
import { SharedHeader } from "../../../src/agent/cache/index/shared-header.ts";
import { Verification } from "../../../src/agent/cache/clearing/verification.ts";
import { everything } from "../../../src/core/patterns/pattern-recipes.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import {
  begin,
  bodyOf,
  clear,
  entryScript,
  isHit,
  keyOf,
  memoryOf,
  openedRig,
  openRig,
  store,
  tamper,
  viewArrived,
} from "./rig.ts";

/** Busy for a minute at its first query, as FTS5 can be: nothing but a signal gets through to it. */
const hanging = `process.on("message", () => {
  const end = performance.now() + 60_000;
  while (performance.now() < end);
});`;
const crashing = `process.on("message", () => process.exit(9));`;

test("a clear of everything by the recipe needs no matcher: it is what was asked for, not widened", async () => {
  using dir = tempDir();
  using scripts = tempDir();
  await using rig = await openedRig(dir.path, {
    matchBudgetMs: 2_000,
    matcherEntry: entryScript(scripts.path, crashing),
  });
  const [one, other] = [keyOf({ path: "/x" }), keyOf({ path: "/x", domain: "b.test" })];
  for (const key of [one, other]) await store(rig.cache, key);
  const { applied, gone } = clear(rig, ["path:never", everything]);
  expect(await applied).toMatchObject({ matched: 1, widened: false });
  expect(await gone).toMatchObject({ removed: 1 });
  expect(isHit(rig.cache, one)).toBe(false);
  expect(isHit(rig.cache, other)).toBe(true);
});

describe.each([
  { what: "a matcher that hangs", matcher: hanging, matchBudgetMs: 300 },
  { what: "a matcher that crashes", matcher: crashing, matchBudgetMs: 2_000 },
  { what: "no time at all", matcher: undefined, matchBudgetMs: 0 },
])("$what", ({ matcher, matchBudgetMs }) => {
  test("widens the clear to everything in scope, also for what is being fetched, and after a restart", async () => {
    using dir = tempDir();
    using scripts = tempDir();
    const matcherEntry = matcher && entryScript(scripts.path, matcher);
    const changes = { matchBudgetMs, ...(matcherEntry && { matcherEntry }) };
    const keys = {
      matching: keyOf({ path: "/x" }),
      notMatching: keyOf({ path: "/y" }),
      sub: keyOf({ path: "/y", host: "shop.a.test" }),
      other: keyOf({ path: "/x", domain: "b.test" }),
    };
    {
      await using rig = await openedRig(dir.path, changes);
      for (const key of Object.values(keys)) await store(rig.cache, key);
      const sourceNo = rig.cache.sourceNo();
      const hostOnly = clear(rig, ["path:x"], { host: "shop.a.test" });
      expect(await hostOnly.applied).toMatchObject({ matched: 1, widened: true });
      expect(isHit(rig.cache, keys.matching)).toBe(true);
      const { applied, gone } = clear(rig, ["path:x"]);
      expect(await applied).toMatchObject({ matched: 2, widened: true });
      expect(await gone).toMatchObject({ removed: 2 });
      expect(await store(rig.cache, keys.notMatching, "old", { sourceNo })).toEqual({
        kind: "blocked",
      });
      expect(rig.health.list().map(({ code }) => code)).toContain("clear_widened");
    }
    await using again = await openedRig(dir.path);
    expect(Object.entries(keys).filter(([, key]) => isHit(again.cache, key))).toEqual([
      ["other", keys.other],
    ]);
  });
});

test("over budget does not hold up commits, and the next clear is matched again", async () => {
  using scripts = tempDir();
  using dir = tempDir();
  await using rig = await openedRig(dir.path, {
    matcherEntry: entryScript(scripts.path, hanging),
    matchBudgetMs: 4_000, // What is asked below has to be done by then.
  });
  const { applied } = clear(rig, ["path:x"]);
  let isApplied = false;
  const settled = applied.then(() => (isApplied = true));
  await until("the guard is armed", () => rig.cache.sourceNo() > 1);
  expect((await store(rig.cache, keyOf({ path: "/y" }))).kind).toBe("stored");
  expect(isApplied).toBe(false);
  await settled;
});

describe("an index that is damaged while it is used", () => {
  test("widens a clear to everything there is; serving goes on, and no id comes back", async () => {
    using dir = tempDir();
    await using rig = await openedRig(dir.path);
    const stored = await store(rig.cache, keyOf({ path: "/x" }));
    await store(rig.cache, keyOf({ path: "/y", domain: "b.test" }));
    const sourceNo = rig.cache.sourceNo();
    const writer = begin(rig.cache, keyOf({ path: "/z" }));
    tamper(dir.path, "DROP TABLE entry_text");
    const { applied, gone } = clear(rig, ["path:nothing"], { clearId: "over damage", seq: 3 });
    // Whoever meets the damage first drops everything: the clear, which is widened then, or work in the background just before it.
    const { widened } = await applied;
    await gone;
    expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
    expect(isHit(rig.cache, keyOf({ path: "/y", domain: "b.test" }))).toBe(false);
    expect(rig.health.list().map(({ code }) => code)).toContain("cache_dropped");
    await viewArrived(rig);
    // Begun before, with the number of before: neither its file nor its source is good any more.
    await writer.write(Buffer.from("old"));
    expect((await store(rig.cache, keyOf({ path: "/x" }), "old", { sourceNo })).kind).toBe(
      "blocked",
    );
    const again = await store(rig.cache, keyOf({ path: "/x" }), "new");
    expect(again.kind === "stored" && stored.kind === "stored" && again.id > stored.id).toBe(true);
    expect(await bodyOf(rig.cache, keyOf({ path: "/x" }))).toBe("new");
    expect(
      await clear(rig, ["path:nothing"], { clearId: "over damage", seq: 3 }).applied,
    ).toMatchObject({ widened });
    expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(true);
  });

  test("an unreadable index found by a worker is dropped", async () => {
    using dir = tempDir();
    await using rig = await openedRig(dir.path);
    await store(rig.cache, keyOf({ path: "/x" }));
    tamper(dir.path, "DROP TABLE entry");
    expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
    await until(
      "a new index is there",
      async () => (await store(rig.cache, keyOf({ path: "/x" }))).kind === "stored",
    );
    expect(await bodyOf(rig.cache, keyOf({ path: "/x" }))).toBe("hello");
  });
});

test("a clear that no index can record drops everything, and no fetch of before is shared or stored", async () => {
  using dir = tempDir();
  using scripts = tempDir();
  const directory = dir.path;
  const header = new SharedHeader(SharedHeader.allocate());
  const clock = { nowS: () => 0, elapsedMs: () => 0, rest: () => undefined };
  const keeper = new IndexKeeper({
    directory,
    header,
    diskMax: 2 ** 20,
    clock,
    facts: { epoch: null, clearSeq: 0, clearNo: 0, opening: null },
    events: { opened: () => undefined, dropped: () => undefined, failed: () => undefined },
  });
  await keeper.open();
  using matcher = new MatchProcess(entryScript(scripts.path, crashing));
  using patterns = openPatternCheck();
  using verification = new Verification({
    keeper,
    match: () => Promise.reject(new Error("nothing is verified here")),
    onUnverified: () => undefined,
  });
  const [matchBudgetMs, onWidened] = [1_000, (): void => undefined];
  const parts = { keeper, matcher, verification, patterns, clock, directory };
  const clearing = new Clearing({ ...parts, matchBudgetMs, onWidened });
  const { clearNo, incarnation } = header;
  const mark = header.clearMark(keyOf());
  using _ = vi.spyOn(OpenIndex.prototype, "record").mockImplementation(() => {
    throw new Error("database or disk is full");
  });
  const scope = { domain: "a.test", host: null };
  const asked = { ...scope, clearId: "never recorded", patterns: ["path:x"], seq: 0 };
  expect(await clearing.clear(asked)).toMatchObject({ widened: true });
  expect(header.incarnation).not.toBe(incarnation);
  expect(header.clearNo).toBeGreaterThan(clearNo);
  expect(header.clearMark(keyOf())).not.toBe(mark);
  await keeper.close(() => Promise.resolve(false));
});

test("while the disk refuses the index nothing is cached, and a journaled clear counts for whenever it opens", async () => {
  using dir = tempDir();
  {
    await using rig = await openedRig(dir.path);
    await store(rig.cache, keyOf({ path: "/x" }));
  }
  const cache = join(dir.path, "cache");
  renameSync(cache, `${cache}-away`);
  writeFileSync(cache, "in the way");
  const memory = memoryOf(dir.path);
  await using rig = openRig(dir.path, { memory });
  await until("the refusal is told", () => rig.health.list()[0]?.code === "cache_closed");
  expect(await rig.client.stats()).toMatchObject({ isOpen: false });
  expect((await store(rig.cache, keyOf({ path: "/x" }))).kind).toBe("failed");
  expect(await clear(rig, ["path:x"], { seq: 5 }).applied).toMatchObject({ widened: true });
  const before = memory.read().clearNo;
  const own = clear(rig, ["path:x"]);
  expect(await own.applied).toMatchObject({ widened: true });
  expect(await own.gone).toMatchObject({ verified: true });
  expect(memory.read().clearNo).toBeGreaterThan(before);
  rmSync(cache);
  renameSync(`${cache}-away`, cache);
  expect(await clear(rig, ["path:unrelated"], { seq: 6 }).applied).toMatchObject({
    widened: false,
  });
  await viewArrived(rig);
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(false);
  expect(rig.health.list().map(({ code }) => code)).not.toContain("cache_closed");
});
