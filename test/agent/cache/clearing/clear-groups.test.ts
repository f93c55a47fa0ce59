// Clears of several hosts and of thousands of URLs: one clear, one commit, one proof, and the guard says what the matcher says.

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { ClearGroup } from "../../../../src/agent/cache/entry.ts";
import { patternsOfPrefix, patternsOfUrl } from "../../../../src/core/patterns/clear-items.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { isHit, keyOf, openedRig, store, type Rig } from "../rig.ts";

const dir = tempDir();
let rig: Rig;
beforeAll(async () => {
  rig = await openedRig(dir.path);
});
beforeEach(async () => {
  await rig.client.dropAll();
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

let no = 0;
const clearGroups = (groups: readonly ClearGroup[], patterns: readonly string[] = []) =>
  rig.client.clear({
    clearId: `groups-${++no}`,
    domain: "a.test",
    host: null,
    patterns,
    groups,
    seq: 0,
  });
const hosts = ["a.test", "img.a.test", "b.test"] as const;
const keyAt = (host: string, path: string) =>
  keyOf({ domain: host === "b.test" ? host : "a.test", host, path });
async function stored(paths: readonly string[]): Promise<string[]> {
  const kept: string[] = [];
  for (const host of hosts)
    for (const path of paths) if (isHit(rig.cache, keyAt(host, path))) kept.push(host + path);
  return kept;
}
async function fill(paths: readonly string[]): Promise<void> {
  for (const host of hosts) for (const path of paths) await store(rig.cache, keyAt(host, path));
}

test("each group is of its host, and all are one clear with one proof", async () => {
  const paths = ["/", "/foo", "/foo/a", "/foobar"];
  await fill(paths);
  const { applied, gone } = clearGroups(
    [
      { host: "img.a.test", patterns: patternsOfPrefix("/foo") },
      { host: "img.a.test", patterns: patternsOfUrl("/", []) },
      { host: "b.test", patterns: null },
    ],
    [`path:foobar`],
  );
  expect(await applied).toMatchObject({ matched: 5, widened: false });
  const kept = ["a.test/", "a.test/foo", "a.test/foo/a"];
  expect(await stored(paths)).toEqual([...kept, ...paths.map((path) => `b.test${path}`)]);
  expect(await gone).toMatchObject({ removed: 5, verified: true });
  await clearGroups([
    { host: "a.test", patterns: null },
    { host: "img.a.test", patterns: null },
  ]).applied;
  expect(await stored(paths)).toEqual(paths.map((path) => `b.test${path}`));
});

test("a URL and a prefix take what was stored with escapes in capitals and in small letters", async () => {
  const paths = ["/caf%C3%A9", "/caf%c3%a9", "/caf%c3%a9/menu", "/cafe"];
  await fill(paths);
  const group = (patterns: readonly string[]) =>
    clearGroups([{ host: "a.test", patterns }]).applied;
  expect(await group(patternsOfUrl("/café", []))).toMatchObject({ matched: 2 });
  expect(await group(patternsOfPrefix("/café"))).toMatchObject({ matched: 1 });
  expect((await stored(paths)).filter((one) => one.startsWith("a.test"))).toEqual(["a.test/cafe"]);
});

test("a group of a host outside of the scope takes nothing", async () => {
  await fill(["/foo"]);
  const { applied, gone } = rig.client.clear({
    clearId: `outside-${++no}`,
    domain: "a.test",
    host: "img.a.test",
    patterns: [],
    groups: [
      { host: "a.test", patterns: ["url:z2ffoo"] },
      { host: "a.test", patterns: null },
      { host: "img.a.test", patterns: ["url:z2fbar"] },
    ],
    seq: 0,
  });
  expect(await applied).toMatchObject({ matched: 0 });
  expect(await gone).toMatchObject({ verified: true });
  expect(await stored(["/foo"])).toEqual(["a.test/foo", "img.a.test/foo", "b.test/foo"]);
});

test("what is being fetched is kept out by the same selection", async () => {
  const sourceNo = rig.cache.sourceNo();
  const { applied, gone } = clearGroups([
    { host: "img.a.test", patterns: patternsOfPrefix("/foo") },
    { host: null, patterns: patternsOfUrl("/one?b=2", []) },
  ]);
  await applied;
  const offered = async (host: string, path: string, query = "") => {
    const key = { ...keyAt(host, path), query };
    return (await store(rig.cache, key, "late", { sourceNo })).kind;
  };
  expect(await offered("img.a.test", "/foo/x")).toBe("blocked");
  expect(await offered("a.test", "/foo/x")).toBe("stored");
  expect(await offered("img.a.test", "/foobar")).toBe("stored");
  expect(await offered("a.test", "/one", "b=2")).toBe("blocked");
  expect(await offered("img.a.test", "/one", "b=2")).toBe("blocked");
  expect(await offered("a.test", "/one")).toBe("stored");
  expect(await offered("b.test", "/one", "b=2")).toBe("stored");
  await gone;
});

test("a thousand URLs with five spellings each are one clear, exact and not slow", async () => {
  const paths = ["/p/1", "/p/1/x", "/p/999", "/p/2000", "/other"];
  await fill(paths);
  const patterns = Array.from(
    { length: 5_000 },
    (_, one) => `url:z2fpz2f${one % 1_000}z${one % 10}0`,
  );
  const groups = [
    {
      host: null,
      patterns: [...patterns, ...Array.from({ length: 1_000 }, (_, one) => `url:z2fpz2f${one}`)],
    },
  ];
  const began = performance.now();
  const { applied, gone } = clearGroups(groups);
  expect(await applied).toMatchObject({ matched: 4, widened: false });
  expect(performance.now() - began).toBeLessThan(5_000); // A fifth of a second on an idle host.
  expect(await stored(["/p/1", "/p/1/x", "/p/999", "/p/2000"])).toEqual([
    "a.test/p/1/x",
    "a.test/p/2000",
    "img.a.test/p/1/x",
    "img.a.test/p/2000",
    ...["/p/1", "/p/1/x", "/p/999", "/p/2000"].map((path) => `b.test${path}`),
  ]);
  expect(await gone).toMatchObject({ verified: true });
});

test("the selection outlives a restart, for what was being fetched and for the proof", async () => {
  const own = tempDir();
  try {
    const before = await openedRig(own.path);
    const sourceNo = before.cache.sourceNo();
    await before.client.clear({
      clearId: "restart",
      domain: "a.test",
      host: null,
      patterns: ["path:news"],
      groups: [{ host: "img.a.test", patterns: ["url:z2ffoo"] }],
      seq: 0,
    }).applied;
    await before[Symbol.asyncDispose]();
    await using after = await openedRig(own.path);
    const offered = async (host: string, path: string) =>
      (await store(after.cache, keyAt(host, path), "late", { sourceNo })).kind;
    expect(await offered("img.a.test", "/foo")).toBe("blocked");
    expect(await offered("a.test", "/foo")).toBe("stored");
    expect(await offered("a.test", "/news")).toBe("blocked");
    const [known] = (await after.client.why([keyAt("img.a.test", "/foo")])).keys;
    expect(known?.clears).toMatchObject([{ clearId: "restart", matches: true }]);
    const [other] = (await after.client.why([keyAt("a.test", "/foo")])).keys;
    expect(other?.clears).toMatchObject([{ clearId: "restart", matches: false }]);
  } finally {
    own[Symbol.dispose]();
  }
});

test("whether a host was cleared by URL is known, also after a restart", async () => {
  const own = tempDir();
  try {
    const before = await openedRig(own.path);
    const given = async (clearId: string, groups: readonly ClearGroup[]) =>
      before.client.clear({ clearId, domain: "a.test", host: null, patterns: [], groups, seq: 0 })
        .applied;
    const main = { domain: "a.test", host: "a.test" };
    const image = { domain: "a.test", host: "img.a.test" };
    await given("tag", [{ host: null, patterns: ["tag:x", "path:foo"] }]);
    await given("host", [{ host: "a.test", patterns: null }]);
    expect(await before.client.isClearedByUrl(main)).toBe(false);
    const pending = before.client.clear({
      clearId: "url",
      domain: "a.test",
      host: "img.a.test",
      patterns: [],
      groups: [{ host: null, patterns: patternsOfUrl("/foo?a=1", []) }],
      seq: 0,
    });
    expect(await before.client.isClearedByUrl(image)).toBe(true);
    await pending.applied;
    expect(await before.client.isClearedByUrl(main)).toBe(false);
    expect(await before.client.isClearedByUrl({ domain: "b.test", host: "b.test" })).toBe(false);
    await before[Symbol.asyncDispose]();
    await using after = await openedRig(own.path);
    expect(await after.client.isClearedByUrl(image)).toBe(true);
  } finally {
    own[Symbol.dispose]();
  }
});

test("what would take too many patterns clears everything in scope, and says so", async () => {
  await fill(["/a"]);
  const { applied } = rig.client.clear({
    clearId: `wider-${++no}`,
    domain: "a.test",
    host: "img.a.test",
    patterns: null,
    isWider: true,
    seq: 0,
  });
  expect(await applied).toMatchObject({ matched: 1, widened: true });
  expect(await stored(["/a"])).toEqual(["a.test/a", "b.test/a"]);
});

test("a search counts what the clear would hit", async () => {
  await fill(["/foo", "/bar"]);
  const scope = { domain: "a.test", host: null };
  const groups = [
    { host: "img.a.test", patterns: null },
    { host: null, patterns: ["url:z2ffoo"] },
  ];
  const found = await rig.client.search({ scope, patterns: [], groups, limit: 10 });
  expect(found).toMatchObject({ matched: 3, overBudget: false });
  expect(found.samples).toHaveLength(3);
});
