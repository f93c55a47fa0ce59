// Bodies on disk and in memory: large ones are streamed, missing and torn ones are misses, space is bounded.

import { rmSync, truncateSync } from "node:fs";
import { expect, test } from "vitest";
import type { EntryKey, EntryMeta } from "../../../../src/agent/cache/entry.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { begin, bodyOf, isHit, keyOf, objectFiles, openedRig, store, tamper } from "../rig.ts";
import { BodyStream } from "../../../../src/agent/cache/worker/body-reader.ts";

test("a large body is streamed, whole, in the order of its chunks, and can be left early", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const key = keyOf({ path: "/large" });
  const body = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
  const sourceNo = rig.cache.sourceNo();
  const writer = begin(rig.cache, key);
  // Not waited for: they must follow each other all the same.
  const written = [0, 1, 2].map(() => writer.write(body));
  expect(await Promise.all(written)).toEqual(["storing", "storing", "storing"]);
  const meta = {
    status: 200,
    headers: [],
    mime: "x/y",
    vary: null,
    storedAtMs: 1,
    initialAgeS: 0,
    freshForS: 1,
    sourceNo,
    digest: null,
  };
  expect(await writer.commit(meta)).toMatchObject({ kind: "stored" });
  expect(await writer.commit(meta)).toMatchObject({ kind: "failed" });
  const [entry] = rig.cache.find(key);
  expect(entry?.size).toBe(900_000);
  expect(Buffer.from((await bodyOf(rig.cache, key)) ?? "").length).toBeGreaterThan(0);
  const stream = entry && (await rig.cache.open(entry));
  if (!(stream instanceof BodyStream)) throw new Error("not streamed");
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  expect(Buffer.concat(chunks).equals(Buffer.concat([body, body, body]))).toBe(true);
  const left = entry && (await rig.cache.open(entry));
  if (!(left instanceof BodyStream)) throw new Error("not streamed");
  for await (const chunk of left) {
    expect(chunk.length).toBeGreaterThan(0);
    break;
  }
  await left[Symbol.asyncDispose]();
});

test("an empty body needs no file", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const before = objectFiles(dir.path).length;
  const writer = begin(rig.cache, keyOf({ path: "/empty" }));
  const meta = {
    status: 301,
    headers: [],
    mime: "",
    vary: null,
    storedAtMs: 1,
    initialAgeS: 0,
    freshForS: 1,
    sourceNo: rig.cache.sourceNo(),
    digest: null,
  };
  expect((await writer.commit(meta)).kind).toBe("stored");
  expect(await bodyOf(rig.cache, keyOf({ path: "/empty" }))).toBe("");
  expect(objectFiles(dir.path).length).toBe(before);
});

test.each([
  { what: "missing", size: 40_000, damage: (path: string) => rmSync(path) },
  { what: "torn", size: 40_000, damage: (path: string) => truncateSync(path, 4) },
  { what: "missing, large", size: 400_000, damage: (path: string) => rmSync(path) },
  { what: "torn, large", size: 400_000, damage: (path: string) => truncateSync(path, 4) },
])("a body that is $what is a miss, and its entry is dropped", async ({ size, damage }) => {
  using dir = tempDir();
  {
    await using rig = await openedRig(dir.path);
    await store(rig.cache, keyOf({ path: "/x" }), "b".repeat(size));
  }
  for (const path of objectFiles(dir.path)) damage(path);
  await using rig = await openedRig(dir.path); // Nothing is hot.
  expect(isHit(rig.cache, keyOf({ path: "/x" }))).toBe(true);
  expect(await bodyOf(rig.cache, keyOf({ path: "/x" }))).toBe(undefined);
  await until("the entry is dropped", () => !isHit(rig.cache, keyOf({ path: "/x" })));
});

test.each([
  { what: "missing", sql: "DELETE FROM body" },
  { what: "cut short", sql: "UPDATE body SET bytes = x'61'" },
])("a body within the index that is $what is a miss, and its entry is dropped", async ({ sql }) => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path, { memoryMax: 0 });
  await store(rig.cache, keyOf({ path: "/x" }), "small");
  expect(await bodyOf(rig.cache, keyOf({ path: "/x" }))).toBe("small");
  expect(objectFiles(dir.path)).toEqual([]);
  tamper(dir.path, sql);
  expect(await bodyOf(rig.cache, keyOf({ path: "/x" }))).toBe(undefined);
  await until("the entry is dropped", () => !isHit(rig.cache, keyOf({ path: "/x" })));
});

test("a body whose file ends early while it is read is an error, not a short body", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  await store(rig.cache, keyOf({ path: "/x" }), "b".repeat(1_000_000));
  const [entry] = rig.cache.find(keyOf({ path: "/x" }));
  const stream = entry && (await rig.cache.open(entry));
  if (!(stream instanceof BodyStream)) throw new Error("not streamed");
  for (const path of objectFiles(dir.path)) truncateSync(path, 100_000);
  await expect(Array.fromAsync(stream)).rejects.toThrow("ends before");
});

test("space is bounded: the longest unused goes, with its body", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path, { diskMax: 2 ** 20 });
  for (let i = 0; i < 300; i++) await store(rig.cache, keyOf({ path: `/${i}` }), "b".repeat(4_000));
  const { bytes, entries } = await until("it is below the limit", async () => {
    const stats = await rig.client.stats();
    return stats.bytes <= 2 ** 20 && stats;
  });
  // A body, an eighth more for its pages, and a row: 4.8 KiB each.
  expect(bytes).toBeLessThanOrEqual(2 ** 20);
  expect(entries).toBeLessThan(220);
  await until("so are the files", () => objectFiles(dir.path).length <= entries);
  expect(isHit(rig.cache, keyOf({ path: "/0" }))).toBe(false);
});

test("variants of one key are bounded; the newest stay", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  for (let i = 0; i < 40; i++)
    await store(rig.cache, keyOf(), "b", { vary: { "user-agent": String(i) } });
  const found = rig.cache.find(keyOf());
  expect(found.map(({ vary }) => Number(vary?.["user-agent"]))).toEqual(
    Array.from({ length: 32 }, (_, i) => 39 - i),
  );
  expect((await rig.client.stats()).entries).toBe(33);
});

test("bits, connection and hot bodies belong to one incarnation: under another word nothing is servable", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const outcome = await store(rig.cache, keyOf({ path: "/x" }));
  const [entry] = rig.cache.find(keyOf({ path: "/x" }));
  if (outcome.kind !== "stored" || entry === undefined) throw new Error("not stored");
  rig.header.incarnation = rig.header.nextIncarnation();
  expect(rig.cache.servable({ id: outcome.id, baseId: null })).toBe(false);
  expect(rig.cache.find(keyOf({ path: "/x" }))).toEqual([]);
  expect(await rig.cache.open(entry)).toBe(undefined);
  expect((await store(rig.cache, keyOf({ path: "/x" }))).kind).toBe("failed");
});

test("what a row is made of is counted: what it varies by, and exact words as long as they are", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const grown = async (key: EntryKey, vary: EntryMeta["vary"]): Promise<number> => {
    const { bytes } = await rig.client.stats();
    expect((await store(rig.cache, key, "b", { vary })).kind).toBe("stored");
    return (await rig.client.stats()).bytes - bytes;
  };
  const plain = await grown(keyOf({ path: "/v" }), null);
  expect(plain).toBeLessThan(600);
  const agent = "a".repeat(2_000);
  expect(await grown(keyOf({ path: "/v" }), { "user-agent": agent })).toBeGreaterThan(
    plain + agent.length,
  );
  // The exact word of the URL and that of its directory, three characters for each of these; such long ones twice.
  const path = `/${"A".repeat(3_000)}/`;
  expect(await grown(keyOf({ path }), null)).toBeGreaterThan(plain + 2 * 2 * 3 * 3_000);
});

test("a response that varies by very much is not stored: any visitor can ask for as many as he likes", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const files = objectFiles(dir.path).length;
  const vary = { "user-agent": "a".repeat(3_000) };
  expect(await store(rig.cache, keyOf(), "b".repeat(40_000), { vary })).toMatchObject({
    kind: "failed",
  });
  expect(isHit(rig.cache, keyOf())).toBe(false);
  await until("nothing of it stays", () => objectFiles(dir.path).length === files);
});
