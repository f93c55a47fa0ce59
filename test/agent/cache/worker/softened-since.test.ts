// Since when an entry is stale by a soft clear, as a worker is told: by the table, by the shared word until it is noted there, and -Infinity where nobody knows.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { indexPath } from "../../../../src/agent/cache/index/index-file.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { clear, keyOf, openedRig, store } from "../rig.ts";

test("by the table where it is noted, by nothing where no clear matched or the origin confirmed it since", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const [key, other] = [keyOf({ path: "/x" }), keyOf({ path: "/other" })];
  await store(rig.cache, key);
  await store(rig.cache, other);
  const [entry] = rig.cache.find(key);
  const [fresh] = rig.cache.find(other);
  if (entry === undefined || fresh === undefined) throw new Error("both are stored");
  expect(rig.cache.softenedSinceMs(entry)).toBeUndefined();
  const beforeS = Math.floor(Date.now() / 1_000);
  await clear(rig, ["path:x"], { clearId: "soft", isSoft: true }).gone;
  const sinceMs = rig.cache.softenedSinceMs(entry) ?? 0;
  expect(sinceMs).toBeGreaterThanOrEqual(beforeS * 1_000);
  expect(sinceMs).toBeLessThanOrEqual(Date.now());
  expect(sinceMs % 1_000).toBe(0);
  expect(rig.cache.softenedSinceMs(fresh)).toBeUndefined();
  // The shared word counts only where the table says nothing.
  rig.header.softSinceS = beforeS - 500;
  expect(rig.cache.softenedSinceMs(entry)).toBe(sinceMs);
  rig.header.softSinceS = 0;
  // A coded body is asked for by what it was made of.
  expect(rig.cache.softenedSinceMs({ id: fresh.id, baseId: entry.id })).toBe(sinceMs);
  expect(rig.cache.softenedSinceMs({ id: entry.id, baseId: fresh.id })).toBeUndefined();
});

test("by the shared word until it is noted; nobody knows since when where neither says anything", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const key = keyOf({ path: "/x" });
  await store(rig.cache, key);
  const [entry] = rig.cache.find(key);
  if (entry === undefined) throw new Error("it is stored");
  await clear(rig, ["path:x"], { clearId: "soft", isSoft: true }).gone;
  const db = openSqlite(indexPath(join(dir.path, "cache")), { sync: "normal" });
  db.exec("DELETE FROM softened");
  db.close();
  rig.header.softSinceS = 1_234;
  expect(rig.cache.softenedSinceMs(entry)).toBe(1_234_000);
  rig.header.softSinceS = 0;
  expect(rig.cache.softenedSinceMs(entry)).toBe(-Infinity);
});
