// What is being fetched while a clear or an invalidation comes: if it matches, its visitor gets it and nobody else.

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { RuleLifetimes } from "../../../../src/core/http/http-cache.ts";
import { inlineBytesMax, type EntryMeta } from "../../../../src/agent/cache/entry.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import {
  begin,
  bodyOf,
  clear,
  isHit,
  keyOf,
  metaOf,
  objectFiles,
  openedRig,
  store,
  type Rig,
} from "../rig.ts";

const dir = tempDir();
let rig: Rig;

beforeAll(async () => {
  rig = await openedRig(dir.path);
});
beforeEach(async () => {
  await rig.client.dropAll();
  await until(
    "everything is deleted",
    async () => (await rig.client.stats()).unfinishedClears === 0,
  );
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

test("a response under way is not stored if it matches, and is if it does not", async () => {
  const sourceNo = rig.cache.sourceNo();
  const [hit, missed, other] = [
    keyOf({ path: "/x" }),
    keyOf({ path: "/y" }),
    keyOf({ path: "/x", domain: "b.test" }),
  ];
  const { applied } = clear(rig, ["path:x"]);
  await applied;
  expect(rig.cache.sourceNo()).toBeGreaterThan(sourceNo);
  expect(await store(rig.cache, hit, "old", { sourceNo })).toEqual({ kind: "blocked" });
  expect(await store(rig.cache, missed, "old", { sourceNo })).toMatchObject({ kind: "stored" });
  expect(await store(rig.cache, other, "old", { sourceNo })).toMatchObject({ kind: "stored" });
  expect(isHit(rig.cache, hit)).toBe(false);
  expect(await store(rig.cache, hit, "new")).toMatchObject({ kind: "stored" });
  expect(await bodyOf(rig.cache, hit)).toBe("new");
});

test("a response under way matches by what it would be stored as, not by what its source was", async () => {
  const sourceNo = rig.cache.sourceNo();
  await clear(rig, ['mime:"image/webp"']).applied;
  const png = await store(rig.cache, keyOf({ path: "/i" }), "p", { sourceNo, mime: "image/png" });
  const webp = await store(rig.cache, keyOf({ path: "/i2" }), "w", {
    sourceNo,
    mime: "image/webp",
  });
  expect([png.kind, webp.kind]).toEqual(["stored", "blocked"]);
});

test("a response under way is counted in the proof", async () => {
  // Enough entries that deletion is still under way when the late commit arrives.
  await Promise.all(
    Array.from({ length: 200 }, (_, i) => store(rig.cache, keyOf({ path: `/x/${i}` }))),
  );
  const sourceNo = rig.cache.sourceNo();
  const { applied, gone } = clear(rig, ["path:x"]);
  const late = Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      store(rig.cache, keyOf({ path: `/x/late/${i}` }), "b", { sourceNo }),
    ),
  );
  const outcomes = await late;
  expect((await applied).matched).toBeGreaterThanOrEqual(200);
  const blocked = outcomes.filter(({ kind }) => kind === "blocked").length;
  expect((await gone).blockedInFlight).toBeLessThanOrEqual(blocked);
  for (let i = 0; i < 20; i++)
    expect(isHit(rig.cache, keyOf({ path: `/x/late/${i}` }))).toBe(false);
});

test("a response under way is not stored after everything of its domain was dropped", async () => {
  const sourceNo = rig.cache.sourceNo();
  await rig.client.dropDomain("a.test");
  expect(await store(rig.cache, keyOf({ path: "/x" }), "old", { sourceNo })).toEqual({
    kind: "blocked",
  });
});

test("a response under way leaves no file behind when it is blocked, aborted or too large", async () => {
  const before = objectFiles(dir.path).length;
  const sourceNo = rig.cache.sourceNo();
  await clear(rig, ["path:x"]).applied;
  await store(rig.cache, keyOf({ path: "/x" }), "b".repeat(400_000), { sourceNo });
  const aborted = begin(rig.cache, keyOf({ path: "/y" }));
  expect(await aborted.write(Buffer.alloc(400_000))).toBe("storing");
  aborted.abort();
  const large = begin(rig.cache, keyOf({ path: "/z" }));
  expect(await large.write(Buffer.alloc(9 * 2 ** 20))).toBe("given-up");
  large.abort();
  await until("the files are gone", () => objectFiles(dir.path).length === before);
});
test("an invalidation removes all variants of the URL and what is being fetched of it, nothing else", async () => {
  const key = keyOf({ path: "/cart", query: "id=1" });
  const other = keyOf({ path: "/cart", query: "id=2" });
  await store(rig.cache, key, "a", { vary: { "accept-language": "de" } });
  await store(rig.cache, key, "b", { vary: { "accept-language": "en" } });
  await store(rig.cache, other);
  expect(rig.cache.find(key).map(({ vary }) => vary?.["accept-language"])).toEqual(["en", "de"]);
  const sourceNo = rig.cache.sourceNo();
  const fetched = begin(rig.cache, key);
  await fetched.write(Buffer.from("old"));
  await rig.cache.invalidate(key);
  expect(isHit(rig.cache, key)).toBe(false);
  expect(isHit(rig.cache, other)).toBe(true);
  expect(rig.cache.sourceNo()).toBeGreaterThan(sourceNo);
  expect(await fetched.commit(metaOf({ sourceNo }))).toEqual({ kind: "blocked" });
  expect((await store(rig.cache, other, "same", { sourceNo })).kind).toBe("stored");
});

test("a response that was overtaken by a newer one is not stored over it", async () => {
  const key = keyOf({ path: "/late" });
  const dated = (second: number): Partial<EntryMeta> => ({
    headers: [["Date", `Tue, 14 Nov 2023 22:13:${second} GMT`]],
  });
  const vary = { "accept-language": "de" };
  expect((await store(rig.cache, key, "v2", dated(20))).kind).toBe("stored");
  const late = "1".repeat(2 * inlineBytesMax);
  expect(await store(rig.cache, key, late, dated(15))).toEqual({ kind: "blocked" });
  expect(await bodyOf(rig.cache, key)).toBe("v2");
  expect(objectFiles(dir.path)).toEqual([]);
  // Another variant is another response.
  expect((await store(rig.cache, key, "de", { ...dated(15), vary })).kind).toBe("stored");
  expect((await store(rig.cache, key, "v3", dated(21))).kind).toBe("stored");

  // Committed in one transaction.
  const both = [store(rig.cache, key, "v5", dated(40)), store(rig.cache, key, "v4", dated(39))];
  expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(["stored", "blocked"]);

  // Somebody gets the rest of it from the store: half an answer is worse than an older one. Not what a clear forbids.
  const awaited = async (sourceNo: number): Promise<string> => {
    const writer = begin(rig.cache, key);
    await writer.write(Buffer.from("awaited"));
    return (await writer.commit(metaOf({ sourceNo, ...dated(30) }), { isAwaited: true })).kind;
  };
  const before = rig.cache.sourceNo();
  expect(await awaited(before)).toBe("stored");
  expect(await bodyOf(rig.cache, key)).toBe("awaited");
  await clear(rig, ["path:late"]).applied;
  expect(await awaited(before)).toBe("blocked");
  expect((await store(rig.cache, key, "v5", dated(40))).kind).toBe("stored");

  // What was cleared stands in nobody's way, be it deleted already or not.
  await clear(rig, ["path:late"]).applied;
  expect((await store(rig.cache, key, "old", dated(10))).kind).toBe("stored");
  expect(await bodyOf(rig.cache, key)).toBe("old");
});

test("an origin whose clock ran ahead keeps nothing out that was asked for since", async () => {
  const key = keyOf({ path: "/ahead" });
  const minutes = (n: number): number => metaOf().storedAtMs + n * 60_000;
  const at = (minute: number, clockMinutes = minute): Partial<EntryMeta> => ({
    headers: [
      ["Date", new Date(minutes(clockMinutes)).toUTCString()],
      ["Cache-Control", "max-age=86400"],
    ],
    storedAtMs: minutes(minute),
    freshForS: 86_400,
  });
  const commit = async (
    body: string,
    meta: Partial<EntryMeta>,
    fetched: { readonly madeAfterMs: number; readonly lifetimes?: RuleLifetimes },
  ): Promise<string> => {
    const sourceNo = rig.cache.sourceNo();
    const writer = begin(rig.cache, key);
    await writer.write(Buffer.from(body));
    return (await writer.commit(metaOf({ sourceNo, ...meta }), fetched)).kind;
  };
  // An hour ahead, and put right a minute later.
  expect(await commit("ahead", at(0, 60), { madeAfterMs: minutes(0) })).toBe("stored");
  expect(await commit("asked for before", at(1), { madeAfterMs: minutes(-1) })).toBe("blocked");
  expect(await commit("asked for since", at(2), { madeAfterMs: minutes(2) })).toBe("stored");
  expect(await bodyOf(rig.cache, key)).toBe("asked for since");

  const ruled = (ttl: number | null): RuleLifetimes => ({
    ttl_s: ttl,
    negative_ttl_s: null,
    override: [],
  });
  // A cache on the way has one that it says is older: it is, for as long as what is stored is fresh by the rule in force.
  const old = { madeAfterMs: minutes(1) };
  expect(await commit("older", at(12, 1), { ...old, lifetimes: ruled(null) })).toBe("blocked");
  expect(await commit("older", at(12, 1), { ...old, lifetimes: ruled(3_600) })).toBe("blocked");
  expect(await commit("older", at(12, 1), { ...old, lifetimes: ruled(60) })).toBe("stored");
});

test("what is known to keep a response out is known before its body", async () => {
  const varied = { vary: { "user-agent": "x".repeat(4_096) } };
  const writer = begin(rig.cache, keyOf({ path: "/known" }));
  expect(writer.mayStore(metaOf(), 10)).toBe(true);
  expect(writer.mayStore(metaOf(), undefined)).toBe(true);
  expect(writer.mayStore(metaOf(), 64 * 2 ** 20)).toBe(false);
  expect(writer.mayStore(metaOf(varied), 10)).toBe(false);
  expect((await writer.commit(metaOf(varied))).kind).toBe("failed");
});
