// Tags of stored responses: found by clears, replaced by a refresh, had by variants, and indexed anew after an upgrade.

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { tagged } from "../../../../src/core/patterns/pattern-recipes.ts";
import { exactWord } from "../../../../src/core/patterns/exact-word.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import {
  clear,
  isHit,
  keyOf,
  metaOf,
  openedRig,
  openRig,
  store,
  tamper,
  viewArrived,
  type Rig,
} from "../rig.ts";

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

const tagsOf = (...tags: readonly string[]) => ({ tags: tags.map(exactWord).join(" ") });
const page = (no: number) => keyOf({ path: `/page/${no}` });

test("a clear by a tag takes what has it, byte for byte, and nothing else", async () => {
  await store(rig.cache, page(1), "a", tagsOf("news", "product-42"));
  await store(rig.cache, page(2), "b", tagsOf("News", "product-421"));
  await store(rig.cache, keyOf({ path: "/product-42" }));
  const { applied, gone } = clear(rig, [tagged("product-42")]);
  expect(await applied).toMatchObject({ matched: 1, widened: false });
  expect(isHit(rig.cache, page(1))).toBe(false);
  expect(isHit(rig.cache, page(2))).toBe(true);
  expect(await gone).toMatchObject({ removed: 1, verified: true });
  // Words without a column are not looked for among tags.
  expect(await clear(rig, ["news"]).applied).toMatchObject({ matched: 0 });
});

test("what was being fetched is kept out by its tags", async () => {
  const sourceNo = rig.cache.sourceNo();
  await clear(rig, [tagged("news")]).applied;
  const late = async (no: number, ...tags: readonly string[]) =>
    (await store(rig.cache, page(no), "late", { sourceNo, ...tagsOf(...tags) })).kind;
  expect(await late(1, "news")).toBe("blocked");
  expect(await late(2, "newsletter")).toBe("stored");
});

test("a refresh replaces the tags, or leaves them where it has none", async () => {
  await store(rig.cache, page(1), "a", tagsOf("old"));
  const [entry] = rig.cache.find(page(1));
  if (entry === undefined) throw new Error("not stored");
  const { headers, mime, storedAtMs, initialAgeS, freshForS } = metaOf();
  const confirmedNo = rig.cache.sourceNo();
  const refreshed = { headers, mime, storedAtMs, initialAgeS, freshForS, confirmedNo };
  expect(await rig.cache.refresh(entry, refreshed)).toMatchObject({ kind: "stored" });
  const matched = async (tag: string) => {
    const scope = { domain: "a.test", host: null };
    return (await rig.client.search({ scope, patterns: [tagged(tag)], limit: 5 })).matched;
  };
  expect([await matched("old"), await matched("new")]).toEqual([1, 0]);
  await rig.cache.refresh(entry, { ...refreshed, ...tagsOf("new", "more") });
  expect([await matched("old"), await matched("new")]).toEqual([0, 1]);
  await rig.cache.refresh(entry, { ...refreshed, tags: "" });
  expect([await matched("old"), await matched("new")]).toEqual([0, 0]);
});

test("a variant has the tags of its base", async () => {
  await store(rig.cache, page(1), "a", tagsOf("news"));
  const [base] = rig.cache.find(page(1));
  if (base === undefined) throw new Error("not stored");
  expect(await rig.cache.storeVariant(base, "gzip", Buffer.from("z"))).toMatchObject({
    kind: "stored",
  });
  expect(await clear(rig, [tagged("news")]).applied).toMatchObject({ matched: 2 });
});

test("five thousand tags of one page are stored and found", async () => {
  const tags = Array.from({ length: 5_000 }, (_, no) => `tag-${no}-${"x".repeat(10)}`);
  await store(rig.cache, page(1), "a", tagsOf(...tags));
  await store(rig.cache, page(2), "a", tagsOf("tag-1"));
  expect(await clear(rig, [tagged(tags[4_321] ?? "")]).applied).toMatchObject({ matched: 1 });
  expect(isHit(rig.cache, page(2))).toBe(true);
});

const entries = 4_000;
/** What a release without tags leaves behind. */
const asBefore = `
  DROP TABLE entry_text;
  CREATE VIRTUAL TABLE entry_text USING fts5(path, query, mime, kind, url, dir, ext, param, content='', contentless_delete=1);
  WITH RECURSIVE n (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n WHERE no < ${entries})
  INSERT INTO entry (key, domain, host, kind, path, query, vary, coding, base_id, mime, status, headers, stored_at_ms,
    initial_age_s, fresh_for_s, source_no, digest, size, used_at_s, footprint)
  SELECT key, domain, host, kind, '/more/' || no, query, vary, coding, base_id, mime, status, headers, stored_at_ms,
    initial_age_s, fresh_for_s, source_no, digest, size, used_at_s, footprint FROM entry, n WHERE path = '/page/1';
  INSERT INTO entry_key SELECT key, id FROM entry WHERE path LIKE '/more/%';
  INSERT INTO entry_text (rowid, path) SELECT id, path FROM entry;
  ALTER TABLE entry DROP COLUMN tags;
  ALTER TABLE entry DROP COLUMN confirmed_no;
  ALTER TABLE clear DROP COLUMN soft;
  DROP TABLE softened;
  ALTER TABLE state DROP COLUMN awaited_from;
  ALTER TABLE state DROP COLUMN awaited_to;
  PRAGMA user_version = 8;
`;
async function upgraded(path: string): Promise<void> {
  await using before = await openedRig(path);
  const headers = [
    ["content-type", "text/html"],
    ["Surrogate-Key", "news product-42"],
  ] as const;
  await store(before.cache, page(1), "a", { headers });
  await store(before.cache, page(2), "b");
  const list = Array.from({ length: 5_001 }, (_, no) => `t${no}`).join(" ");
  await store(before.cache, page(3), "c", { headers: [["xkey", list]] });
  await before[Symbol.asyncDispose]();
  tamper(path, asBefore);
}

test("what the release before has stored is served at once, and found by its tags once it is indexed", async () => {
  using own = tempDir();
  await upgraded(own.path);
  await using after = openRig(own.path);
  // Before anything is indexed: a clear by patterns widens, and never misses.
  const early = clear(after, [tagged("nothing-has-it")], { host: "sub.a.test" });
  expect(await early.applied).toMatchObject({ matched: 0, widened: true });
  await viewArrived(after);
  expect(isHit(after.cache, page(1))).toBe(true);
  expect(isHit(after.cache, page(2))).toBe(true);
  const scope = { domain: "a.test", host: null };
  const search = (pattern: string) => after.client.search({ scope, patterns: [pattern], limit: 1 });
  await until("it is indexed", async () =>
    search("path:page").then(
      () => true,
      () => false,
    ),
  );
  // The one with too many tags went.
  expect(await search("path:page")).toMatchObject({ matched: 2 });
  expect(isHit(after.cache, page(3))).toBe(false);
  expect(await after.client.check()).toEqual({ ok: true, problems: [] });
  const [entry] = after.cache.find(page(1));
  expect(entry?.headers).toEqual([["content-type", "text/html"]]);
  const { applied, gone } = clear(after, [tagged("product-42")]);
  expect(await applied).toMatchObject({ matched: entries + 1, widened: false });
  expect(isHit(after.cache, page(1))).toBe(false);
  expect(isHit(after.cache, page(2))).toBe(true);
  expect(await gone).toMatchObject({ removed: entries + 1, verified: true });
});

test("a stop in the middle of indexing loses nothing, and a clear of everything ends it", async () => {
  using own = tempDir();
  await upgraded(own.path);
  for (let no = 0; no < 3; no++) {
    await using again = openRig(own.path);
    await clear(again, [`path:nothing${no}`], { host: "sub.a.test" }).applied;
  }
  await using after = await openedRig(own.path);
  expect(isHit(after.cache, page(1))).toBe(true);
  await until("it is indexed", async () => (await after.client.check()).ok);
  expect((await after.client.stats()).entries).toBeGreaterThan(entries);
  const all = await after.client.dropAll();
  expect(all.removed).toBeGreaterThan(entries);
  await until("it is gone", async () => (await after.client.stats()).unfinishedClears === 0);
  expect(await after.client.check()).toEqual({ ok: true, problems: [] });
});

test("everything is cleared while what was stored before is being indexed", async () => {
  using own = tempDir();
  await upgraded(own.path);
  await using after = openRig(own.path);
  const { applied, gone } = clear(after, ["kind:static OR kind:generated"]);
  expect(await applied).toMatchObject({ widened: false });
  // The one with too many tags may have gone before.
  expect((await applied).matched).toBeGreaterThanOrEqual(entries + 2);
  await gone;
  await viewArrived(after);
  await store(after.cache, page(1), "new", tagsOf("news"));
  await until("all is in order", async () => (await after.client.check()).ok);
  expect(await clear(after, [tagged("news")]).applied).toMatchObject({
    matched: 1,
    widened: false,
  });
});
