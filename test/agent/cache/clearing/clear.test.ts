// Clearing through the public interfaces, with the real thread, process and files: what matches is gone, what does not stays, and what was under way is not stored.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { EntryKey } from "../../../../src/agent/cache/entry.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
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

test("what is stored is found with all that was given, until it is cleared; then row and body are deleted", async () => {
  const key = keyOf({ path: "/blog/post-1", query: "page=2" });
  const meta = metaOf({
    status: 203,
    headers: [
      ["content-type", "text/html; charset=utf-8"],
      ["x-twice", "1"],
      ["x-twice", "2"],
    ],
    sourceNo: rig.cache.sourceNo(),
    initialAgeS: 1.5,
    freshForS: 30,
    digest: "d1",
  });
  const outcome = await store(rig.cache, key, "the body", meta);
  expect(outcome.kind).toBe("stored");
  const [entry] = rig.cache.find(key);
  expect(entry).toMatchObject({ ...key, ...meta, size: 8 });
  expect(entry !== undefined && rig.cache.servable(entry)).toBe(true);
  expect(await bodyOf(rig.cache, key)).toBe("the body");
  const before = inlineBodies(dir.path);

  const { applied, gone } = clear(rig, ['path:"blog post"']);
  expect(await applied).toMatchObject({ matched: 1, widened: false });
  expect(entry !== undefined && rig.cache.servable(entry)).toBe(false);
  expect(isHit(rig.cache, key)).toBe(false);
  expect(entry && (await rig.cache.open(entry))).toBe(undefined);
  expect(await gone).toMatchObject({ removed: 1, blockedInFlight: 0 });
  expect(inlineBodies(dir.path)).toBe(before - 1);
});

const paths: {
  name: string;
  key: Partial<EntryKey>;
  mime?: string;
  pattern: string;
  other: string;
}[] = [
  { name: "the site root", key: { path: "/" }, pattern: "path:^xend", other: "path:root" },
  {
    name: "the site root by mime and kind",
    key: { path: "/" },
    pattern: "mime:html AND kind:generated",
    other: "mime:css",
  },
  {
    name: "a directory",
    key: { path: "/blog/2024/a.html" },
    pattern: 'path:^"blog 2024"',
    other: 'path:^"2024"',
  },
  {
    name: "an exact path",
    key: { path: "/blog/" },
    pattern: 'path:^"blog xend"',
    other: 'path:^"blog a xend"',
  },
  {
    name: "an extension",
    key: { path: "/img/logo.png" },
    mime: "image/png",
    pattern: 'path:"png xend"',
    other: 'path:"logo xend"',
  },
  {
    name: "a percent-encoded path",
    key: { path: "/caf%C3%A9/a%20b" },
    pattern: 'path:"café a b"',
    other: "path:cafe",
  },
  {
    name: "a decomposed pattern",
    key: { path: "/caf%C3%A9" },
    pattern: "path:cafe\u0301",
    other: "path:caf",
  },
  {
    name: "bytes that are no UTF-8",
    key: { path: "/caf%E9" },
    pattern: 'path:"caf E9"',
    other: "path:café",
  },
  {
    name: "a CJK path",
    key: { path: "/%E8%B7%AF%E5%BE%84/x" },
    pattern: "path:路径",
    other: "path:路",
  },
  {
    name: "a query parameter",
    key: { path: "/s", query: "q=a%20b&h=20" },
    pattern: 'query:"h 20"',
    other: 'query:"h 2"',
  },
  {
    name: "a mime type",
    key: { path: "/x" },
    mime: "image/webp",
    pattern: 'mime:"image/webp"',
    other: 'mime:"image/png"',
  },
  {
    name: "everything",
    key: { path: "/x" },
    pattern: "kind:static OR kind:generated",
    other: "kind:static",
  },
];
test.each(paths)(
  "$name is cleared by $pattern, not by $other",
  async ({ key, mime, pattern, other }) => {
    const full = keyOf(key);
    await store(rig.cache, full, "x", { mime: mime ?? "text/html" });
    expect(await clear(rig, [other]).applied).toMatchObject({ matched: 0 });
    expect(isHit(rig.cache, full)).toBe(true);
    expect(await clear(rig, ["path:nothing", pattern]).applied).toMatchObject({ matched: 1 });
    expect(isHit(rig.cache, full)).toBe(false);
  },
);

test("customers, hosts and unlinked names are kept apart", async () => {
  const keys = {
    main: keyOf({ path: "/x" }),
    sub: keyOf({ path: "/x", host: "shop.a.test" }),
    other: keyOf({ path: "/x", domain: "b.test" }),
  };
  const hits = (): string[] =>
    Object.entries(keys).flatMap(([name, key]) => (isHit(rig.cache, key) ? [name] : []));
  const fill = async (): Promise<void> => {
    for (const key of Object.values(keys)) await store(rig.cache, key);
  };
  await fill();
  expect(await clear(rig, ["path:x"], { host: "shop.a.test" }).applied).toMatchObject({
    matched: 1,
  });
  expect(hits()).toEqual(["main", "other"]);
  await fill();
  expect(await clear(rig, ["path:x"]).applied).toMatchObject({ matched: 2 });
  expect(hits()).toEqual(["other"]);
  await fill();
  expect(await rig.client.dropHost("shop.a.test")).toEqual({ removed: 1 });
  expect(hits()).toEqual(["main", "other"]);
  await fill();
  expect(await rig.client.dropDomain("a.test")).toEqual({ removed: 2 });
  expect(hits()).toEqual(["other"]);
  await fill();
  expect((await rig.client.dropAll()).removed).toBe(3);
  expect(hits()).toEqual([]);
});

test("a clear id counts once: repeated it tells what it came to and clears nothing new", async () => {
  await store(rig.cache, keyOf({ path: "/x" }));
  const first = clear(rig, ["path:x"], { clearId: "one" });
  const told = { applied: await first.applied, gone: await first.gone };
  await store(rig.cache, keyOf({ path: "/x" }));
  const again = clear(rig, ["path:x"], { clearId: "one" });
  expect({ applied: await again.applied, gone: await again.gone }).toEqual(told);
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(true);
});

test.each(["image/png", "", "*", "*id", '"/"', "a*", "NOT x", "domain:b", "host:x OR path:y"])(
  "the pattern %j is refused and nothing is cleared",
  async (pattern) => {
    await store(rig.cache, keyOf({ path: "/x" }));
    const { applied, gone } = clear(rig, ["path:x", pattern]);
    await expect(applied).rejects.toMatchObject({ code: "PATTERN_INVALID" });
    await expect(gone).rejects.toMatchObject({ code: "PATTERN_INVALID" });
    expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(true);
  },
);

test("storing again replaces: the old id is servable no more, and its body is deleted", async () => {
  const key = keyOf({ path: "/x" });
  const first = await store(rig.cache, key, "one");
  const before = objectFiles(dir.path).length;
  const second = await store(rig.cache, key, "two");
  expect(first.kind === "stored" && rig.cache.servable({ id: first.id, baseId: null })).toBe(false);
  expect(second.kind === "stored" && rig.cache.servable({ id: second.id, baseId: null })).toBe(
    true,
  );
  expect(rig.cache.find(key)).toHaveLength(1);
  expect(await bodyOf(rig.cache, key)).toBe("two");
  expect(objectFiles(dir.path).length).toBe(before);
});

test("a static file is an entry once it was served, and can be cleared", async () => {
  const key = keyOf({ kind: "static", path: "css/100%25 späte.css" });
  rig.cache.noteStatic(
    key,
    metaOf({ sourceNo: rig.cache.sourceNo(), digest: "d", mime: "text/css" }),
    77,
  );
  const [entry] = await until("it is noted", () => {
    const found = rig.cache.find(key);
    return found.length > 0 && found;
  });
  expect(entry).toMatchObject({ size: 77, digest: "d" });
  // A static path is decoded already: %25 is part of the name.
  expect(
    await clear(rig, ['kind:static AND path:^"css 100 25 späte css xend"']).applied,
  ).toMatchObject({ matched: 1 });
  expect(isHit(rig.cache, key)).toBe(false);
});

test("operators search, count and check", async () => {
  await store(rig.cache, keyOf({ path: "/x/1" }));
  await store(rig.cache, keyOf({ path: "/x/2" }));
  await store(rig.cache, keyOf({ path: "/x/3", domain: "b.test" }));
  const found = await rig.client.search({
    scope: { domain: "a.test", host: null },
    patterns: ["path:x"],
    limit: 1,
  });
  expect(found.matched).toBe(2);
  expect(found.samples.map(({ path }) => path)).toEqual(["/x/2"]);
  await expect(
    rig.client.search({
      scope: { domain: "a.test", host: null },
      patterns: ["/x"],
      limit: 1,
    }),
  ).rejects.toMatchObject({ code: "PATTERN_INVALID" });
  expect(await rig.client.stats()).toMatchObject({ isOpen: true, entries: 3 });
  expect(await rig.client.check()).toEqual({ ok: true, problems: [] });
  expect(existsSync(join(dir.path, "cache/index.db"))).toBe(true);
});

test("the journal's confirmation is one shared word", () => {
  expect(rig.cache.confirmed("a.test")).toBe(false);
  rig.client.setConfirmed();
  expect(rig.cache.confirmed("a.test")).toBe(true);
  rig.client.setUnsure(["a.test"]);
  expect(rig.cache.confirmed("a.test")).toBe(false);
  expect(rig.cache.confirmed("b.test")).toBe(true);
  rig.client.setUnsure([]);
  expect(rig.cache.confirmed("a.test")).toBe(true);
});
