// Collection on a real directory under a virtual clock: what is needed, kept, lately in force or being prepared stays; everything else goes.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { openBlobStore, type BlobStore } from "../../../src/agent/viewset/blob-store.ts";
import { Collection, type Referenced } from "../../../src/agent/viewset/collection.ts";
import { createViewsetMetrics } from "../../../src/agent/viewset/metrics.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { blobPath } from "../../../src/core/blob-path.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { digest, FakeCentral } from "./fake-central.ts";
import { never } from "./fixture.ts";
import { ReleaseBlobs } from "../../../src/agent/viewset/manifest-blobs.ts";

const minute = 60_000;

async function setUp(path: string) {
  const time = { ms: 0 };
  const nowMs = (): number => time.ms;
  const store = await openBlobStore(join(path, "blobs"), nowMs);
  const releases = new ReleaseBlobs(store);
  const stop = new AbortController();
  const rig = { references: [] as readonly Referenced[], looked: 0 };
  const waits: { readonly ms: number; readonly end: () => void }[] = [];
  const collection = new Collection({
    store,
    blobsOf: async (manifest) => releases.of(manifest),
    references: () => {
      rig.looked++;
      return rig.references;
    },
    metrics: createViewsetMetrics(new Registry()),
    log: silentLog(),
    nowMs,
    wait: async (ms, stopped) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waits.push({ ms, end: () => resolve(true) });
      stopped.addEventListener("abort", () => resolve(false));
      return stopped.aborted ? false : promise;
    },
    stop: stop.signal,
  });
  /** A version with these contents; everything of it is on disk. */
  const version = async (...contents: readonly string[]): Promise<Sha256> => {
    const files = [];
    for (const content of contents) {
      const { sha256, size } = await store.putBytes(Buffer.from(content));
      files.push({ path: content, sha256, size, mime: "text/plain" });
    }
    const devlove = await store.putBytes(Buffer.from("{}"));
    const manifest = { devlove: { schema: "devlove/1", sha256: devlove.sha256 }, files };
    return (await store.putBytes(Buffer.from(JSON.stringify(manifest)))).sha256;
  };
  const isHere = (content: string): boolean => existsSync(blobPath(store.dir, digest(content)));
  return { store, collection, time, rig, waits, version, isHere, stop };
}

test("what no version needs goes; what one in force or a kept one needs stays, its manifest and devlove among it", async () => {
  using dir = tempDir();
  const { collection, time, rig, version, isHere, store } = await setUp(dir.path);
  await using _ = collection;
  const [inForce, kept, gone] = [
    await version("both", "in force"),
    await version("both", "kept"),
    await version("both", "gone"),
  ];
  time.ms += 11 * minute;
  rig.references = [
    { manifest: inForce, isNeeded: true },
    { manifest: kept, isNeeded: false },
  ];
  expect(await collection.collect()).toMatchObject({ removed: 2, blobs: 6, young: 0 });
  expect(["both", "in force", "kept", "gone"].map(isHere)).toEqual([true, true, true, false]);
  expect([inForce, kept, gone].map((sha256) => store.has({ sha256 }))).toEqual([true, true, false]);
  expect(isHere("{}")).toBe(true);
  await until("the bytes are freed", () => readdirSync(join(store.dir, "incoming")).length === 0);
});

test("what was stored or asked for within ten minutes stays", async () => {
  using dir = tempDir();
  const { collection, time, store, isHere } = await setUp(dir.path);
  await using _ = collection;
  for (const content of ["stored", "asked for"]) await store.putBytes(Buffer.from(content));
  time.ms += 9 * minute;
  store.has({ sha256: digest("asked for") });
  expect(await collection.collect()).toMatchObject({ removed: 0, young: 2 });
  time.ms += minute;
  expect(await collection.collect()).toMatchObject({ removed: 1, removedBytes: 6, young: 1 });
  expect(["stored", "asked for"].map(isHere)).toEqual([false, true]);
  time.ms += 9 * minute;
  expect(await collection.collect()).toMatchObject({ removed: 1, blobs: 0 });
});

test("what was asked for under a hold stays as long as it is open, and ten minutes more", async () => {
  using dir = tempDir();
  const { collection, time, store, isHere } = await setUp(dir.path);
  await using _ = collection;
  await store.putBytes(Buffer.from("before"));
  time.ms += 1;
  const hold = store.hold();
  await store.putBytes(Buffer.from("under it"));
  time.ms += 600 * minute;
  expect(await collection.collect()).toMatchObject({ removed: 1, young: 1 });
  hold[Symbol.dispose]();
  time.ms += 9 * minute;
  expect(await collection.collect()).toMatchObject({ removed: 0, young: 1 });
  expect(["before", "under it"].map(isHere)).toEqual([false, true]);
  time.ms += minute;
  expect(await collection.collect()).toMatchObject({ removed: 1, young: 0 });
});

test("what was in force stays ten minutes longer, a kept version that is given up does not; whoever has a file open reads it to its end", async () => {
  using dir = tempDir();
  const { collection, time, rig, version, isHere, store } = await setUp(dir.path);
  await using _ = collection;
  const [served, kept] = [await version("served"), await version("kept")];
  time.ms += 11 * minute;
  rig.references = [
    { manifest: served, isNeeded: true },
    { manifest: kept, isNeeded: false },
  ];
  await collection.collect();
  rig.references = [];
  await collection.collect();
  expect(["served", "kept"].map(isHere)).toEqual([true, false]);
  await using file = await open(blobPath(store.dir, digest("served")));
  time.ms += 10 * minute;
  await collection.collect();
  expect(isHere("served")).toBe(false);
  expect(await file.readFile("utf8")).toBe("served");
});

test("where the manifest of a needed version cannot be read nothing goes; a kept one that is damaged stops nothing", async () => {
  using dir = tempDir();
  const { collection, time, rig, version, isHere, store } = await setUp(dir.path);
  await using _ = collection;
  const [needed, kept] = [await version("needed"), await version("kept")];
  await store.putBytes(Buffer.from("nobody's"));
  writeFileSync(blobPath(store.dir, needed), "noise");
  writeFileSync(blobPath(store.dir, kept), "noise");
  time.ms += 11 * minute;
  rig.references = [{ manifest: needed, isNeeded: true }];
  expect(await collection.collect()).toBeUndefined();
  expect(["needed", "kept", "nobody's"].map(isHere)).toEqual([true, true, true]);
  rig.references = [{ manifest: kept, isNeeded: false }];
  expect(await collection.collect()).toMatchObject({ blobs: 0 });
});

test("what asks within a minute is one collection, and one that left young files is repeated", async () => {
  using dir = tempDir();
  const { collection, time, store, rig, waits, isHere } = await setUp(dir.path);
  await using _ = collection;
  const pass = async (ms: number, count: number): Promise<void> => {
    await until("it waits", () => waits.length === count);
    expect(waits.at(-1)?.ms).toBe(ms);
    time.ms += ms;
    waits.at(-1)?.end();
  };
  await store.putBytes(Buffer.from("young"));
  for (let i = 0; i < 5; i++) collection.request();
  await pass(minute, 2); // After the wait for tomorrow, which the requests ended.
  await pass(10 * minute, 3);
  expect([rig.looked, isHere("young")]).toEqual([1, true]);
  await pass(minute, 4);
  await until("it is gone", () => !isHere("young"));
  await pass(24 * 60 * minute, 5);
  expect(rig.looked).toBe(2);
});

const large = Buffer.alloc(500_000, "large");
const want = { sha256: digest(large), size: large.length, bytesMax: large.length };

/** A transfer that breaks off after 200,000 bytes. */
async function breakOff(store: BlobStore, central = new FakeCentral()): Promise<FakeCentral> {
  central.cuts.set(central.add(large), 200_000);
  const broken = store.fetch(want, async (...call) => central.getBlob(...call), never);
  await expect(broken).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  return central;
}

const incoming = (store: BlobStore): readonly string[] => readdirSync(join(store.dir, "incoming"));

test("a version that is left is looked at again when its time is over", async () => {
  using dir = tempDir();
  const { collection, time, rig, version, waits, isHere } = await setUp(dir.path);
  await using _ = collection;
  const pass = async (ms: number, count: number): Promise<void> => {
    await until("it waits", () => waits.length === count);
    expect(waits.at(-1)?.ms).toBe(ms);
    time.ms += ms;
    waits.at(-1)?.end();
  };
  rig.references = [{ manifest: await version("left"), isNeeded: true }];
  time.ms += 11 * minute;
  await collection.collect();
  rig.references = [];
  collection.request();
  await pass(minute, 2);
  await pass(10 * minute, 3);
  expect(isHere("left")).toBe(true);
  await pass(minute, 4);
  await until("it is gone", () => !isHere("left"));
  await pass(24 * 60 * minute, 5);
});

test("where nobody knows what is needed it is looked at the next day, or when it is asked for", async () => {
  using dir = tempDir();
  const { collection, rig, waits } = await setUp(dir.path);
  await using _ = collection;
  rig.references = [{ manifest: digest("nowhere"), isNeeded: true }];
  collection.request();
  await until("it waits", () => waits.length === 2);
  waits.at(-1)?.end();
  await until("it waits again", () => waits.length === 3);
  expect([rig.looked, waits.at(-1)?.ms]).toEqual([1, 24 * 60 * minute]);
});

test("a large directory is gone through in pieces, between which the loop turns; what is no blob stays", async () => {
  using dir = tempDir();
  const { collection, time, store } = await setUp(dir.path);
  await using _ = collection;
  const fan = join(store.dir, "ab");
  mkdirSync(fan);
  const blobs = Array.from({ length: 600 }, (_, i) => parsed(`ab${digest(`${i}`).slice(2)}`));
  for (const sha256 of blobs) writeFileSync(join(fan, sha256), "");
  writeFileSync(join(fan, "notes.txt"), "an operator's");
  for (const sha256 of blobs) store.has({ sha256 });
  const asked = vi.spyOn(store, "removeUnlessUsed");
  const collected = collection.collect();
  const mostYoung = await mostBetweenTurns(() => asked.mock.calls.length, collected);
  expect(await collected).toMatchObject({ removed: 0, young: 600, blobs: 600 });
  expect(mostYoung).toBeLessThanOrEqual(256);
  time.ms += 10 * minute;
  const again = collection.collect();
  expect(await mostBetweenTurns(() => asked.mock.calls.length, again)).toBeLessThanOrEqual(64);
  expect(await again).toMatchObject({ removed: 600, young: 0, blobs: 0 });
  expect(readdirSync(fan)).toEqual(["notes.txt"]);
});

function parsed(text: string): Sha256 {
  const sha256 = parseSha256(text);
  if (sha256 === undefined) throw new Error(text);
  return sha256;
}

/** By how much it grows from one turn of the loop to the next, until the work is done. */
async function mostBetweenTurns(count: () => number, work: Promise<unknown>): Promise<number> {
  const at = { end: false };
  const done = work.finally(() => (at.end = true));
  let most = 0;
  for (let before = count(); !at.end; before = count()) {
    await nextTurn();
    most = Math.max(most, count() - before);
  }
  await done;
  return most;
}

test("what a transfer has left stays while it is asked for, and goes when it no longer is", async () => {
  using dir = tempDir();
  const { collection, time, rig, store } = await setUp(dir.path);
  await using _ = collection;
  const central = await breakOff(store);
  time.ms += 9 * minute;
  expect(await collection.collect()).toMatchObject({ young: 1 });
  await breakOff(store, central);
  time.ms += 9 * minute;
  await collection.collect();
  expect(central.asked.map(({ from }) => from)).toEqual([0, 200_000]);
  expect(incoming(store)).toEqual([`${want.sha256}.part`]);
  time.ms += minute;
  // Also where nobody knows which blobs are needed.
  rig.references = [{ manifest: digest("nowhere"), isNeeded: true }];
  expect(await collection.collect()).toBeUndefined();
  expect(incoming(store)).toEqual([]);
});

test("what a transfer has left stays as long as a hold is open under which it was asked for", async () => {
  using dir = tempDir();
  const { collection, time, store } = await setUp(dir.path);
  await using _ = collection;
  const hold = store.hold();
  await breakOff(store);
  time.ms += 600 * minute;
  await collection.collect();
  expect(incoming(store).length).toBe(1);
  hold[Symbol.dispose]();
  time.ms += 10 * minute;
  await collection.collect();
  expect(incoming(store)).toEqual([]);
});

test("what an earlier start has left stays for a day; whoever goes on with it makes it his own", async () => {
  using dir = tempDir();
  const { collection: first, store: earlier } = await setUp(dir.path);
  await first[Symbol.asyncDispose]();
  const central = await breakOff(earlier);
  const others = join(earlier.dir, "incoming", `${digest("other")}.part`);
  writeFileSync(others, "oth");
  const { collection, time, store } = await setUp(dir.path);
  await using _ = collection;
  time.ms += 60 * minute;
  expect(await collection.collect()).toMatchObject({ young: 0 });
  expect(incoming(store).length).toBe(2);
  await breakOff(store, central);
  expect(central.asked.map(({ from }) => from)).toEqual([0, 200_000]);
  time.ms += 11 * minute;
  await collection.collect();
  expect(incoming(store)).toEqual([`${digest("other")}.part`]);
  time.ms += 24 * 60 * minute;
  await collection.collect();
  expect(incoming(store)).toEqual([]);
});

test("what a transfer writes to stays, however long it takes and whoever needs the room", async () => {
  using dir = tempDir();
  const { collection, time, store } = await setUp(dir.path);
  await using _ = collection;
  const central = new FakeCentral();
  central.add(large);
  const gate = Promise.withResolvers<void>();
  central.gate = gate.promise;
  const fetched = store.fetch(want, async (...call) => central.getBlob(...call), never);
  await until("the transfer runs", () => central.running === 1);
  time.ms += 60 * minute;
  await collection.collect();
  await store.parts.removeBut(() => false);
  expect(incoming(store)).toEqual([`${want.sha256}.part`]);
  gate.resolve();
  await fetched;
  expect(store.has(want)).toBe(true);
});

test("what failed is looked at ten minutes later, and not before", async () => {
  using dir = tempDir();
  const { collection, time, store, rig, waits } = await setUp(dir.path);
  await using _ = collection;
  const pass = async (ms: number, count: number): Promise<void> => {
    await until("it waits", () => waits.length === count);
    expect(waits.at(-1)?.ms).toBe(ms);
    time.ms += ms;
    waits.at(-1)?.end();
  };
  await breakOff(store);
  for (let i = 0; i < 5; i++) collection.requestLate();
  await pass(10 * minute, 2); // Beside the wait for tomorrow.
  expect(rig.looked).toBe(0);
  await pass(minute, 3);
  await until("it is gone", () => incoming(store).length === 0);
  await pass(24 * 60 * minute, 4);
});
