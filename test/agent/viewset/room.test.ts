// Room within a bound: kept versions go first, oldest first; what cannot fit is refused before anything is fetched; what is prepared at once counts together.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Room, type HeldReleases } from "../../../src/agent/viewset/room.ts";
import { openBlobStore } from "../../../src/agent/viewset/blob-store.ts";
import { silentLog } from "../../../src/base/log.ts";
import { blobKey, blobList } from "../../../src/core/blob-list.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { digest } from "./fake-central.ts";
import { ReleaseBlobs } from "../../../src/agent/viewset/manifest-blobs.ts";

const blob = (name: string, size: number) => ({ sha256: digest(name), size });

async function setUp(path: string, bytesMax: number) {
  const releaseBlobs = new ReleaseBlobs(await openBlobStore(path));
  const held: ReturnType<HeldReleases["held"]>[number][] = [];
  const hold = (name: string, standing: "needed" | "kept", ...blobs: ReturnType<typeof blob>[]) => {
    releaseBlobs.note(digest(name), blobList(blobs));
    const activatedAt = `2030-01-0${held.length + 1}T00:00:00.000Z`;
    held.push({ domain: "a.example", manifest: digest(name), standing, activatedAt });
  };
  const givenUp: string[] = [];
  const rig: {
    bytesMost: number | undefined;
    here: readonly string[];
    parts: ReturnType<typeof blob>[];
  } = { bytesMost: undefined, here: [], parts: [] };
  let collected = 0;
  const room = new Room({
    store: {
      get bytesMost() {
        return rig.bytesMost;
      },
      lacking: async (blobs) =>
        [...blobs].filter(({ sha256 }) => !rig.here.some((name) => digest(name) === sha256)),
      parts: {
        idleBytes: async () => rig.parts.reduce((sum, { size }) => sum + size, 0),
        removeBut: async (isNeeded) => {
          rig.parts = rig.parts.filter(({ sha256 }) => isNeeded(blobKey(sha256)));
        },
      },
    },
    releases: {
      held: () => held.filter(({ manifest }) => !givenUp.includes(manifest)),
      giveUp: (releases) => void givenUp.push(...releases.map(({ manifest }) => manifest)),
    },
    releaseBlobs,
    bytesMax,
    collect: async () => ++collected,
    log: silentLog(),
  });
  const ended = new AbortController();
  /** `lacking`: of the blobs, those that are not here. */
  const takeOf = async (
    name: string,
    blobs: readonly ReturnType<typeof blob>[],
    lacking: readonly ReturnType<typeof blob>[],
  ) =>
    room.take(
      { domain: "b.example", manifest: digest(name), blobs: blobList(blobs) },
      lacking,
      ended.signal,
    );
  const take = async (...blobs: ReturnType<typeof blob>[]) => takeOf("new", blobs, blobs);
  let reads = 0;
  /** Files of these contents; `unreadBytes` of others that keep changing. */
  const takeUnread = async (blobs: readonly ReturnType<typeof blob>[], unreadBytes = 0) =>
    room.takeUnread(
      "b.example",
      blobs.reduce((sum, { size }) => sum + size, unreadBytes),
      async () => {
        reads++;
        return { blobs, unreadBytes };
      },
    );
  return {
    hold,
    take,
    takeOf,
    takeUnread,
    rig,
    ended,
    givenUp,
    collected: () => collected,
    reads: () => reads,
  };
}

/** Whether it is still waiting after some turns of the event loop. */
async function isWaiting(taking: Promise<unknown>): Promise<boolean> {
  const settled = taking.then(
    () => false,
    () => false,
  );
  return Promise.race([settled, sleep(50, true)]);
}

test("the oldest kept versions go where their place is needed, and no more of them", async () => {
  using dir = tempDir();
  const { hold, take, givenUp, collected } = await setUp(dir.path, 100);
  hold("first", "kept", blob("1", 30));
  hold("second", "kept", blob("2", 30));
  hold("in force", "needed", blob("3", 30));
  using _fits = await take(blob("4", 10));
  expect([givenUp, collected()]).toEqual([[], 0]);
  using _next = await take(blob("5", 25));
  expect([givenUp, collected()]).toEqual([[digest("first")], 1]);
});

test("what cannot fit beside what is needed is refused, and gives up nothing", async () => {
  using dir = tempDir();
  const { hold, take, givenUp } = await setUp(dir.path, 100);
  hold("kept", "kept", blob("1", 30));
  hold("in force", "needed", blob("2", 60));
  await expect(take(blob("3", 50))).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
  expect(givenUp).toEqual([]);
  // What both have counts once, and the refused one takes no place.
  using _shares = await take(blob("2", 60), blob("4", 40));
  expect(givenUp).toEqual([digest("kept")]);
});

test("what is prepared at the same time takes its place until it ends; what fits then waits for it", async () => {
  using dir = tempDir();
  const { take, takeUnread, hold, ended } = await setUp(dir.path, 100);
  hold("in force", "needed", blob("0", 30));
  const first = await take(blob("1", 60));
  const second = take(blob("2", 60));
  expect(await isWaiting(second)).toBe(true);
  // Alone it would not fit either.
  await expect(take(blob("3", 71))).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
  // An import may hold room already, and waits for nobody.
  await expect(takeUnread([blob("4", 60)])).rejects.toMatchObject({
    code: "VIEWSET_TOO_LARGE",
    message: expect.stringContaining("1 more that are being activated or imported just now"),
  });
  first[Symbol.dispose]();
  const site = await second;
  const third = take(blob("5", 60));
  expect(await isWaiting(third)).toBe(true);
  ended.abort(new Error("superseded"));
  await expect(third).rejects.toThrow("superseded");
  site[Symbol.dispose]();
});

test("what is in force, or all here, is not refused where there is too much already", async () => {
  using dir = tempDir();
  const { take, takeOf, hold, givenUp } = await setUp(dir.path, 100);
  const files = [blob("1", 90), blob("2", 40)];
  hold("in force", "needed", ...files);
  hold("kept", "kept", blob("3", 20));
  await expect(take(blob("4", 1))).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
  using _mended = await takeOf("in force", files, files.slice(1));
  using _back = await takeOf("kept", [blob("3", 20)], []);
  expect(givenUp).toEqual([]);
});

test("where everything on disk and everything that comes fits, no other version is looked at", async () => {
  using dir = tempDir();
  const { hold, take, rig, givenUp } = await setUp(dir.path, 100);
  hold("wrongly large", "needed", blob("1", 1_000));
  rig.bytesMost = 40;
  using _fits = await take(blob("2", 60));
  expect(givenUp).toEqual([]);
  await expect(take(blob("3", 1))).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
});

test("files are not read where they fit whatever they hold; until it is told what they hold they share nothing", async () => {
  using dir = tempDir();
  const { take, takeUnread, rig, hold, reads } = await setUp(dir.path, 100);
  hold("in force", "needed", blob("1", 40));
  rig.bytesMost = 40;
  using site = await takeUnread([blob("1", 40), blob("2", 10)]);
  expect(reads()).toBe(0);
  await expect(takeUnread([blob("3", 50)])).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
  site.tell([blob("1", 40), blob("2", 10)]);
  using _fits = await take(blob("3", 50));
});

test("files that may not fit are read: what is here takes no room twice, what keeps changing takes its own", async () => {
  using dir = tempDir();
  const { takeUnread, rig, hold, reads, givenUp, collected } = await setUp(dir.path, 100);
  hold("kept", "kept", blob("1", 30));
  hold("in force", "needed", blob("2", 60));
  rig.bytesMost = 90;
  rig.here = ["1", "2"];
  const copies = [blob("2", 60), blob("2", 60), blob("3", 10)];
  const site = await takeUnread(copies);
  expect([reads(), givenUp, collected()]).toEqual([1, [], 0]);
  site[Symbol.dispose]();
  await expect(takeUnread(copies, 31)).rejects.toMatchObject({
    code: "VIEWSET_TOO_LARGE",
    message: expect.stringMatching(/need 101 bytes, more than viewset\.disk_max allows \(100\)$/),
  });
  expect(givenUp).toEqual([]);
  using _gives = await takeUnread(copies, 30);
  expect([givenUp, collected()]).toEqual([[digest("kept")], 1]);
});

test("files that are all here are taken also where there is too much already", async () => {
  using dir = tempDir();
  const { takeUnread, rig, hold } = await setUp(dir.path, 100);
  hold("in force", "needed", blob("1", 130));
  rig.bytesMost = 130;
  rig.here = ["1"];
  using _same = await takeUnread([blob("1", 130)]);
  await expect(takeUnread([blob("2", 1)])).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
});

test("what transfers have left takes room, and goes before any version does; what is needed of it stays", async () => {
  using dir = tempDir();
  const { hold, take, rig, givenUp } = await setUp(dir.path, 100);
  hold("kept", "kept", blob("1", 30));
  rig.bytesMost = 30;
  rig.parts = [blob("1", 5), blob("2", 5), blob("3", 30)];
  using _fits = await take(blob("2", 30));
  expect(rig.parts.length).toBe(3);
  using _next = await take(blob("4", 10));
  expect([rig.parts, givenUp]).toEqual([[blob("1", 5), blob("2", 5)], []]);
});
