// A soft clear: what matches is stale at once and stays servable, until its origin has confirmed it since; through restarts, too.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Entry, EntryKey } from "../../../../src/agent/cache/entry.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import {
  begin,
  bodyOf,
  clear,
  isHit,
  keyOf,
  metaOf,
  openedRig,
  store,
  tamper,
  type Rig,
} from "../rig.ts";

const dir = tempDir();
let rig: Rig;
beforeAll(async () => void (rig = await openedRig(dir.path)));
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

const page = (path: string): EntryKey => keyOf({ path: `/soft/${path}` });
const softly = (path: string) => clear(rig, [`path:"soft ${path} xend"`], { isSoft: true });

function entryAt(key: EntryKey, { cache }: Pick<Rig, "cache"> = rig): Entry {
  const entry = cache.find(key).find(({ form }) => form === null);
  if (entry === undefined) throw new Error(`${key.path} is not stored`);
  return entry;
}

function confirm(entry: Entry, confirmedNo: number): Promise<{ readonly kind: string }> {
  const { headers, mime, initialAgeS, freshForS } = entry;
  const storedAtMs = entry.storedAtMs + 1;
  return rig.cache.refresh(entry, {
    headers,
    mime,
    storedAtMs,
    initialAgeS,
    freshForS,
    confirmedNo,
  });
}

test("what matches is stale since then and servable; nothing else is; and that is proved", async () => {
  const beforeMs = Math.floor(Date.now() / 1_000) * 1_000;
  await store(rig.cache, page("a"), "A");
  await store(rig.cache, page("b"), "B");
  const { applied, gone } = softly("a");
  expect(await applied).toMatchObject({ matched: 1, widened: false });
  const a = entryAt(page("a"));
  expect([rig.cache.servable(a), rig.cache.softened(a)]).toEqual([true, true]);
  const sinceMs = rig.cache.softenedSinceMs(a) ?? 0;
  expect(sinceMs).toBeGreaterThanOrEqual(beforeMs);
  expect(sinceMs).toBeLessThanOrEqual(Date.now());
  expect(await bodyOf(rig.cache, page("a"))).toBe("A");
  const b = entryAt(page("b"));
  expect([rig.cache.softened(b), rig.cache.softenedSinceMs(b)]).toEqual([false, undefined]);
  expect(await gone).toMatchObject({ removed: 0, verified: true, left: 0 });
  // As the table has it from now on.
  expect(rig.cache.softenedSinceMs(a)).toBe(sinceMs);
});

test("a confirmation that was asked for since makes it fresh, one of before does not", async () => {
  const key = page("confirmed");
  await store(rig.cache, key);
  const before = rig.cache.sourceNo();
  await softly("confirmed").applied;
  const entry = entryAt(key);
  expect(await confirm(entry, before)).toEqual({ kind: "blocked" });
  expect(rig.cache.softened(entry)).toBe(true);
  expect(await confirm(entry, rig.cache.sourceNo())).toEqual({ kind: "stored", id: entry.id });
  expect(rig.cache.softened(entry)).toBe(false);
  // And a clear that comes later finds it again.
  expect(await softly("confirmed").applied).toMatchObject({ matched: 1 });
  expect(rig.cache.softened(entry)).toBe(true);
});

test("a confirmation with other words is not stored under a soft clear that matches those", async () => {
  const key = page("renamed");
  await store(rig.cache, key);
  const before = rig.cache.sourceNo();
  await clear(rig, ['path:renamed AND mime:"image/png"'], { isSoft: true }).applied;
  const entry = entryAt(key);
  const { headers, storedAtMs, initialAgeS, freshForS } = entry;
  const refreshed = { headers, mime: "image/png", storedAtMs, initialAgeS, freshForS };
  const late = await rig.cache.refresh(entry, { ...refreshed, confirmedNo: before });
  expect(late).toEqual({ kind: "blocked" });
  await store(rig.cache, key);
  const confirmedNo = rig.cache.sourceNo();
  const again = await rig.cache.refresh(entryAt(key), { ...refreshed, confirmedNo });
  expect(again).toMatchObject({ kind: "stored" });
});

test("what is being fetched is not stored, and what is fetched since replaces it, fresh", async () => {
  const key = page("fetched");
  await store(rig.cache, key, "old");
  const sourceNo = rig.cache.sourceNo();
  const late = begin(rig.cache, key);
  await late.write(Buffer.from("late"));
  const { applied, gone } = softly("fetched");
  await applied;
  expect(await late.commit(metaOf({ sourceNo }))).toEqual({ kind: "blocked" });
  expect(await bodyOf(rig.cache, key)).toBe("old");
  expect(rig.cache.softened(entryAt(key))).toBe(true);
  await gone;
  // Even one with an earlier Date: what is stale stands in nobody's way.
  await store(rig.cache, key, "new", { headers: [["Date", "Tue, 14 Nov 2023 00:00:00 GMT"]] });
  expect(await bodyOf(rig.cache, key)).toBe("new");
  expect(rig.cache.softened(entryAt(key))).toBe(false);
});

test("a coded body is as fresh as what it was made of", async () => {
  const key = page("coded");
  await store(rig.cache, key);
  const base = entryAt(key);
  await rig.cache.storeVariant(base, "br", Buffer.from("x"));
  const { applied, gone } = softly("coded");
  expect(await applied).toMatchObject({ matched: 2 });
  const coded = rig.cache.find(key).find(({ form }) => form === "br");
  if (coded === undefined) throw new Error("not coded");
  expect([rig.cache.softened(coded), rig.cache.servable(coded)]).toEqual([true, true]);
  expect(await gone).toMatchObject({ verified: true });
  // One that is made of what is stale is stale, and no contradiction to the clear.
  await rig.cache.storeVariant(base, "gzip", Buffer.from("y"));
  const later = rig.cache.find(key).find(({ form }) => form === "gzip");
  expect(later && rig.cache.softened(later)).toBe(true);
  await confirm(base, rig.cache.sourceNo());
  expect(rig.cache.find(key).map((entry) => rig.cache.softened(entry))).toEqual([
    false,
    false,
    false,
  ]);
});

test("a clear takes what is stale, and a soft one everything in scope where it widens", async () => {
  await store(rig.cache, page("taken"));
  await softly("taken").applied;
  expect(await clear(rig, ["path:taken"]).applied).toMatchObject({ matched: 1 });
  expect(isHit(rig.cache, page("taken"))).toBe(false);
  const other = keyOf({ domain: "b.test", host: "b.test", path: "/wide" });
  await store(rig.cache, other);
  const wide = { clearId: "wide", domain: "b.test", host: null, seq: 0, isSoft: true };
  const { applied } = rig.client.clear({ ...wide, patterns: null, isWider: true });
  expect(await applied).toMatchObject({ matched: 1, widened: true });
  const [entry] = rig.cache.find(other);
  expect(entry && rig.cache.softened(entry)).toBe(true);
});

test("it is stale since the first of two soft clears, through a stop, a crash and an update", async () => {
  using own = tempDir();
  const key = page("kept");
  const all = { domain: "a.test", host: null, patterns: null, seq: 0, isSoft: true } as const;
  await using first = await openedRig(own.path);
  await store(first.cache, key);
  await first.client.clear({ ...all, clearId: "one" }).gone;
  const sinceMs = first.cache.softenedSinceMs(entryAt(key, first));
  await until("a second later", () => Date.now() >= (sinceMs ?? 0) + 1_000);
  await first.client.clear({ ...all, clearId: "two" }).gone;
  expect(first.cache.softenedSinceMs(entryAt(key, first))).toBe(sinceMs);
  await first[Symbol.asyncDispose]();

  // As if the process had been killed before the ids of the second clear were noted.
  tamper(own.path, "UPDATE clear SET phase = 1, ids = x'' WHERE clear_id = 'two'");
  await using second = await openedRig(own.path);
  expect(second.cache.softenedSinceMs(entryAt(key, second))).toBe(sinceMs);
  await second.client.clear({ ...all, patterns: ["path:nothing"], clearId: "three" }).gone;
  expect(await second.client.check()).toEqual({ ok: true, problems: [] });
  await second[Symbol.asyncDispose]();

  await using confirmed = await openedRig(own.path);
  const { headers, mime, storedAtMs, initialAgeS, freshForS } = entryAt(key, confirmed);
  const refreshed = { headers, mime, storedAtMs, initialAgeS, freshForS };
  const confirmedNo = confirmed.cache.sourceNo();
  await confirmed.cache.refresh(entryAt(key, confirmed), { ...refreshed, confirmedNo });
  await confirmed[Symbol.asyncDispose]();
  await using fourth = await openedRig(own.path);
  expect(fourth.cache.softened(entryAt(key, fourth))).toBe(false);
  await fourth.client.clear({ ...all, clearId: "again" }).gone;
  await fourth[Symbol.asyncDispose]();

  tamper(
    own.path,
    `ALTER TABLE entry DROP COLUMN confirmed_no; ALTER TABLE clear DROP COLUMN soft;
     DROP TABLE softened; PRAGMA user_version = 9;`,
  );
  await using third = await openedRig(own.path);
  const entry = entryAt(key, third);
  expect(third.cache.softened(entry)).toBe(false); // The release before knows no soft clears.
  expect(await third.client.clear({ ...all, clearId: "four" }).applied).toMatchObject({
    widened: false,
  });
  expect(third.cache.softened(entry)).toBe(true);
}, 60_000);
