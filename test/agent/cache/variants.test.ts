// Entries that depend on others or change in place: coded bodies, forms of pictures, refreshes, and what other workers and clears make of them.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { CommitOutcome, Entry, EntryKey, Refreshed } from "../../../src/agent/cache/entry.ts";
import {
  imageFormsMax,
  imageWidthsMax,
  type ImageForm,
} from "../../../src/core/images/image-form.ts";
import { openWorkerCache } from "../../../src/agent/cache/worker/worker-cache.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import {
  bodyOf,
  clear,
  inlineBodies,
  isHit,
  keyOf,
  metaOf,
  objectFiles,
  openedRig,
  store,
  type Rig,
} from "./rig.ts";

const dir = tempDir();
let rig: Rig;
beforeAll(async () => {
  rig = await openedRig(dir.path);
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

const baseOf = (key: EntryKey) => {
  const base = rig.cache.find(key).find(({ form }) => form === null);
  if (base === undefined) throw new Error("not stored");
  return base;
};
const codings = (key: EntryKey): (string | null)[] => rig.cache.find(key).map(({ form }) => form);
const fresh = { headers: [["a", "b"]], storedAtMs: 2, initialAgeS: 0, freshForS: 9 } as const;
/** The origin confirms the entry now. */
const refresh = (entry: Entry, changes: Omit<Refreshed, "confirmedNo">): Promise<CommitOutcome> =>
  rig.cache.refresh(entry, { ...changes, confirmedNo: rig.cache.sourceNo() });

test("a coded body is an entry of its own with the head of its base's key, and replaces one of the same coding", async () => {
  const key = keyOf({ path: "/coded", query: "a=1" });
  await store(rig.cache, key, "plain", { vary: { "accept-language": "de" } });
  const base = baseOf(key);
  const large = Buffer.alloc(40_000, 7);
  expect(await rig.cache.storeVariant(base, "br", Buffer.from("one"))).toMatchObject({
    kind: "stored",
  });
  expect(await rig.cache.storeVariant(base, "br", Buffer.from("two"))).toMatchObject({
    kind: "stored",
  });
  expect(await rig.cache.storeVariant(base, "zstd", large)).toMatchObject({ kind: "stored" });
  expect(codings(key)).toEqual(["zstd", "br", null]);
  const [zstd, br] = rig.cache.find(key);
  expect(br).toMatchObject({ ...key, baseId: base.id, vary: base.vary, sourceNo: base.sourceNo });
  expect(Buffer.from((br && (await rig.cache.open(br))) as Uint8Array).toString()).toBe("two");
  expect(((zstd && (await rig.cache.open(zstd))) as Uint8Array).length).toBe(40_000);
});

test("what a base loses, its coded bodies lose: replaced, cleared, invalidated", async () => {
  const files = objectFiles(dir.path).length;
  for (const [path, lose] of [
    ["/replaced", (key: EntryKey) => store(rig.cache, key, "new")],
    ["/cleared", () => clear(rig, ["path:^cleared"]).gone],
    ["/invalidated", (key: EntryKey) => rig.cache.invalidate(key)],
  ] as const) {
    const key = keyOf({ path });
    await store(rig.cache, key, "old");
    const base = baseOf(key);
    await rig.cache.storeVariant(base, "gzip", Buffer.alloc(40_000));
    const coded = rig.cache.find(key)[0];
    if (coded?.form !== "gzip") throw new Error("not coded");
    expect(rig.cache.servable(coded)).toBe(true);
    await lose(key);
    expect(rig.cache.servable(coded)).toBe(false);
    expect(await rig.cache.open(coded)).toBe(undefined);
    expect(codings(key).includes("gzip")).toBe(false);
    expect(await rig.cache.storeVariant(base, "br", Buffer.from("late"))).toEqual({
      kind: "blocked",
    });
  }
  await until("their files go", () => objectFiles(dir.path).length === files);
});

test("a coded body is unservable by its base's bit alone", async () => {
  const key = keyOf({ path: "/by-base" });
  await store(rig.cache, key);
  const base = baseOf(key);
  const coded = await rig.cache.storeVariant(base, "br", Buffer.from("x"));
  if (coded.kind !== "stored") throw new Error("not stored");
  expect(rig.cache.servable({ id: coded.id, baseId: 2 ** 27 })).toBe(false);
  expect(rig.cache.servable({ id: coded.id, baseId: base.id })).toBe(true);
});

test("a static file that was noted is the base of coded bodies", async () => {
  const key = keyOf({ kind: "static", path: "app.js" });
  rig.cache.noteStatic(key, metaOf({ digest: "d1", sourceNo: rig.cache.sourceNo() }), 90_000);
  await until("it is noted", () => isHit(rig.cache, key));
  const base = baseOf(key);
  expect(await rig.cache.open(base)).toBe(undefined);
  expect(isHit(rig.cache, key)).toBe(true); // And not dropped for that.
  await rig.cache.storeVariant(base, "zstd", Buffer.from("small"));
  expect(rig.cache.find(key)[0]).toMatchObject({ form: "zstd", digest: "d1" });
  expect((await clear(rig, ["ext:js"]).applied).matched).toBe(2);
});

test("a refresh changes head and freshness, not the body or the source number", async () => {
  const key = keyOf({ path: "/refreshed" });
  await store(rig.cache, key, "same");
  const before = baseOf(key);
  await clear(rig, ["path:unrelated"]).applied;
  expect(await refresh(before, { ...fresh, mime: before.mime })).toEqual({
    kind: "stored",
    id: before.id,
  });
  const after = baseOf(key);
  expect(after).toEqual({ ...before, ...fresh });
  expect(await bodyOf(rig.cache, key)).toBe("same");
});

test("a refresh with another media type is found by that, and not by the old one", async () => {
  const key = keyOf({ path: "/typed" });
  await store(rig.cache, key, "same", { mime: "image/png" });
  await rig.cache.storeVariant(baseOf(key), "br", Buffer.from("x"));
  const png = baseOf(key);
  expect((await refresh(png, { ...fresh, mime: "image/webp" })).kind).toBe("stored");
  expect(codings(key)).toEqual([null]);
  const scope = { path: "path:typed" };
  expect((await clear(rig, [`${scope.path} AND mime:"image/png"`]).applied).matched).toBe(0);
  expect((await clear(rig, [`${scope.path} AND mime:"image/webp"`]).applied).matched).toBe(1);
});

test("a refresh that brings an entry under a clear given since its source was read removes it", async () => {
  const key = keyOf({ path: "/late-type" });
  await store(rig.cache, key, "same", { mime: "image/png" });
  const entry = baseOf(key);
  await clear(rig, ['path:late AND mime:"image/webp"']).applied;
  expect(isHit(rig.cache, key)).toBe(true);
  const refreshed = { ...fresh, mime: "image/webp" };
  expect(await refresh(entry, refreshed)).toEqual({ kind: "blocked" });
  expect(isHit(rig.cache, key)).toBe(false);
});

test("a refresh never brings back what was cleared", async () => {
  const key = keyOf({ path: "/cleared-304" });
  await store(rig.cache, key);
  const entry = baseOf(key);
  await clear(rig, ["path:cleared"]).applied;
  expect(await refresh(entry, { ...fresh, mime: entry.mime })).toEqual({
    kind: "blocked",
  });
  expect(isHit(rig.cache, key)).toBe(false);
});

test("what a worker remembers of a key ends when another changes it, and SQLite is not asked before", async () => {
  const { init, port } = rig.client.workerInit();
  using other = openWorkerCache(init, port);
  const key = keyOf({ path: "/remembered" });
  await store(rig.cache, key, "one");
  await until("the other sees it", () => isHit(other, key));
  const remembered = other.find(key)[0];
  expect(other.find(key)[0]).toBe(remembered); // The same object: it was not read again.
  await refresh(baseOf(key), { ...fresh, mime: "text/html" });
  expect(other.find(key)[0]).toMatchObject({ freshForS: fresh.freshForS });
  await rig.cache.storeVariant(baseOf(key), "gzip", Buffer.from("z"));
  expect(other.find(key).map(({ form }) => form)).toEqual(["gzip", null]);
  await store(rig.cache, key, "two");
  expect(await bodyOf(other, key)).toBe("two");
  await clear(rig, ["path:remembered"]).applied;
  expect(isHit(other, key)).toBe(false);
});

test("the mark of a key moves with clears of its domain and with its own invalidations, not with those of others", async () => {
  const key = keyOf({ domain: "marked.test" });
  const mark = (): number => rig.cache.clearMark(key);
  let before = mark();
  await store(rig.cache, key);
  expect(mark()).toBe(before);
  await clear(rig, ["path:nothing"], { domain: "marked.test" }).applied;
  expect(mark()).not.toBe(before);
  before = mark();
  await rig.cache.invalidate({ ...key, path: "/beacon" });
  await rig.cache.invalidate({ ...key, query: "x=1" });
  expect(mark()).toBe(before);
  await rig.cache.invalidate(key);
  expect(mark()).not.toBe(before);
  before = mark();
  await rig.client.dropAll();
  expect(mark()).not.toBe(before);
});

test("after a clear of everything what came since is still found by its words", async () => {
  const keys = Array.from({ length: 2_500 }, (_, i) => keyOf({ path: `/many/${i}` }));
  for (let at = 0; at < keys.length; at += 200)
    await Promise.all(keys.slice(at, at + 200).map((key) => store(rig.cache, key)));
  await rig.client.dropAll();
  const late = keyOf({ path: "/many/late" });
  await store(rig.cache, late);
  await until("all is deleted", async () => (await rig.client.stats()).unfinishedClears === 0);
  expect(await rig.client.stats()).toMatchObject({ entries: 1 });
  expect(inlineBodies(dir.path)).toBe(1);
  expect(await rig.client.check()).toMatchObject({ ok: true });
  expect((await clear(rig, ['path:^"many late"']).applied).matched).toBe(1);
  expect(isHit(rig.cache, late)).toBe(false);
});

test("a picture is found with all of its forms, however many there are, beside those of other visitors", async () => {
  const key = keyOf({ path: "/photo.jpg" });
  const widths = Array.from({ length: imageWidthsMax }, (_, no) => 320 + no);
  const forms: readonly ImageForm[] = [
    "avif",
    "webp",
    ...widths.flatMap((width): readonly ImageForm[] => [
      `avif-${width}`,
      `webp-${width}`,
      `same-${width}`,
    ]),
  ];
  expect(forms).toHaveLength(imageFormsMax);
  for (const scheme of ["http", "https", "http:8080"]) {
    await store(rig.cache, key, scheme, {
      mime: "image/jpeg",
      vary: { "x-forwarded-proto": scheme },
    });
    const base = baseOf(key);
    for (const form of forms)
      expect(await rig.cache.storeVariant(base, form, Buffer.from(form))).toMatchObject({
        kind: "stored",
      });
  }
  const found = rig.cache.find(key);
  expect(found.filter(({ form }) => form === null)).toHaveLength(3);
  expect(found).toHaveLength(3 * (1 + imageFormsMax));
  const again = baseOf(key);
  await rig.cache.storeVariant(again, "avif", Buffer.from("better"));
  expect(rig.cache.find(key)).toHaveLength(found.length);
  await rig.cache.invalidate(key);
});

test.each([
  ['mime:^"image/png"', true],
  ["mime:^image", true],
  ["ext:png", true],
  ["path:^logo", true],
  ['mime:^"image/avif"', false],
  ["mime:^text", false],
])("a clear of %s takes a picture with its forms: %j", async (pattern, isTaken) => {
  const key = keyOf({ path: "/logo.png" });
  await store(rig.cache, key, "png", { mime: "image/png" });
  const base = baseOf(key);
  for (const form of ["avif", "webp-640"] as const)
    await rig.cache.storeVariant(base, form, Buffer.from(form));
  const forms = rig.cache.find(key);
  expect(forms).toHaveLength(3);
  const { matched } = await clear(rig, [pattern]).applied;
  expect(matched).toBe(isTaken ? 3 : 0);
  for (const one of forms) expect(rig.cache.servable(one)).toBe(!isTaken);
  const late = await rig.cache.storeVariant(base, "webp", Buffer.from("late"));
  expect(late.kind).toBe(isTaken ? "blocked" : "stored");
  await rig.cache.invalidate(key);
});

test("a form that is asked to be stored while its picture is cleared is not", async () => {
  const key = keyOf({ path: "/meanwhile.png" });
  await store(rig.cache, key, "png", { mime: "image/png" });
  const base = baseOf(key);
  const cleared = clear(rig, ["path:^meanwhile"]).applied;
  const outcomes = Promise.all([
    rig.cache.storeVariant(base, "avif", Buffer.from("avif")),
    rig.cache.storeVariant(base, "avif-640", Buffer.alloc(40_000, 1)),
  ]);
  await cleared;
  await outcomes;
  expect(rig.cache.find(key)).toEqual([]);
});
