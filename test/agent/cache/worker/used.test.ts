// What eviction goes by: what was asked for again outlasts what was stored once, whoever stores how much of it, and also among the variants of one URL.

import { join } from "node:path";
import { expect, test } from "vitest";
import type { EntryKey } from "../../../../src/agent/cache/entry.ts";
import { UsedIds } from "../../../../src/agent/cache/worker/used-ids.ts";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { isHit, keyOf, openedRig, store, type Rig } from "../rig.ts";

const numbers = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => from + i);

test("what is used is told once a round, and everything in turn, however much it is", () => {
  const used = new UsedIds();
  const told = new Map<number, number>();
  for (let tick = 0; tick < 100; tick++) {
    for (const id of numbers(1, 16_000)) used.note(id);
    const ids = used.take();
    expect(ids.length).toBeLessThanOrEqual(512);
    for (const id of ids) told.set(id, (told.get(id) ?? 0) + 1);
  }
  expect(told.size).toBe(16_000);
  expect(Math.max(...told.values()) - Math.min(...told.values())).toBeLessThanOrEqual(3);
});

test("what is used all the while is told once in sixty times, and sooner only after everything was forgotten", () => {
  const used = new UsedIds();
  const toldAt = (ticks: number): number[] =>
    numbers(1, ticks).filter(() => {
      used.note(7);
      return used.take().length > 0;
    });
  expect(toldAt(121)).toEqual([1, 61, 121]);
  expect(toldAt(3)).toEqual([]);
  used.clear();
  expect(toldAt(3)).toEqual([1]);
});

test("what was asked for once in a while is told as well, though much else was at the same moment", () => {
  const used = new UsedIds();
  for (const id of numbers(1, 16_000)) used.note(id);
  const told = numbers(0, 40).flatMap(() => [...used.take()]);
  expect(told.toSorted((a, b) => a - b)).toEqual(numbers(1, 16_000));
});

test("what is used all the while is told again each round, also beside more than a round remembers", () => {
  const used = new UsedIds();
  const ticks: number[] = [];
  for (let tick = 0; tick < 1_000; tick++) {
    used.note(7);
    for (const id of numbers(1_000 + tick * 600, 600)) used.note(id);
    if (used.take().includes(7)) ticks.push(tick);
  }
  // Every 128 ticks, and behind up to 32 ticks of what waits.
  const gaps = ticks.slice(1).map((tick, at) => tick - (ticks[at] ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(128 + 33);
  used.clear();
  used.note(7);
  expect([...used.take()]).toEqual([7]);
});

test("the used variants of one key are told at once, the others later", () => {
  const used = new UsedIds();
  used.note(1, 50);
  used.note(2, 51);
  used.note(3, 50);
  expect([...used.takeOf(50)]).toEqual([1, 3]);
  used.note(1, 50);
  expect([...used.take()]).toEqual([2]);
  // Told already: nothing of it waits.
  used.note(2, 51);
  expect([...used.takeOf(51)]).toEqual([]);
});

const usedAt = (stateDir: string, path: string): number => {
  const db = openSqlite(join(stateDir, "cache/index.db"), { sync: "normal", readonly: true });
  const sql = "SELECT max(used_at_s) FROM entry WHERE path = ?";
  const at = db.prepare<[string], number>(sql).pluck().get(path) ?? 0;
  db.close();
  return at;
};

const storeAll = async ({ cache }: Rig, keys: readonly EntryKey[]): Promise<void> => {
  for (let at = 0; at < keys.length; at += 100)
    await Promise.all(keys.slice(at, at + 100).map((key) => store(cache, key)));
};

test("what is asked for again outlasts whatever is stored once, be it another customer's", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path, { diskMax: 2 ** 20 });
  const hot = numbers(0, 50).map((no) => keyOf({ domain: "b.test", path: `/hot/${no}` }));
  await storeAll(rig, hot);
  const before = usedAt(dir.path, "/hot/49");
  for (const key of hot) expect(isHit(rig.cache, key)).toBe(true);
  await until("their use is noted", () => usedAt(dir.path, "/hot/49") > before);
  await storeAll(
    rig,
    numbers(0, 6_000).map((no) => keyOf({ query: `x=${no}` })),
  );
  await until("there is room", async () => (await rig.client.stats()).bytes <= 2 ** 20);
  expect(hot.filter((key) => isHit(rig.cache, key))).toHaveLength(50);
});

test("what replaces a response was asked for again", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  await store(rig.cache, keyOf({ path: "/again" }));
  const before = usedAt(dir.path, "/again");
  await store(rig.cache, keyOf({ path: "/again" }));
  expect(usedAt(dir.path, "/again")).toBeGreaterThan(before + 3_000);
});

test("variants that are used stay, whatever else is asked for of the URL", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const key = keyOf({ path: "/varies" });
  const storeVariant = (language: string) =>
    store(rig.cache, key, language, { vary: { "accept-language": language } });
  const held = () => rig.cache.find(key).map(({ vary }) => vary?.["accept-language"]);
  const hot = ["de", "en", "fr", "es", "it", "pl", "nl", "pt", "ja", "zh"];
  for (const language of hot) await storeVariant(language);
  for (const entry of rig.cache.find(key)) rig.cache.used(entry);
  for (const no of numbers(0, 40)) await storeVariant(`x-${no}`);
  expect(held()).toHaveLength(32);
  expect(held()).toEqual(expect.arrayContaining(hot));
});
