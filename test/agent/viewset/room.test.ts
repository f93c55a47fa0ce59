// Room within a bound: kept versions go first, oldest first; what cannot fit is refused before anything is fetched; what is prepared at once counts together.

import { expect, test } from "vitest";
import { Room, type HeldReleases } from "../../../src/agent/viewset/room.ts";
import { openBlobStore } from "../../../src/agent/viewset/blob-store.ts";
import { ReleaseBlobs } from "../../../src/agent/viewset/release-blobs.ts";
import { silentLog } from "../../../src/base/log.ts";
import { blobList } from "../../../src/core/blob-list.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { digest } from "./fake-central.ts";

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
  const rig: { bytesMost: number | undefined } = { bytesMost: undefined };
  let collected = 0;
  const room = new Room({
    store: {
      get bytesMost() {
        return rig.bytesMost;
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
  const take = async (name: string, ...blobs: ReturnType<typeof blob>[]) =>
    room.take({ domain: "b.example", manifest: digest(name), blobs: blobList(blobs) }, blobs);
  return { hold, take, rig, givenUp, collected: () => collected };
}

test("the oldest kept versions go where their place is needed, and no more of them", async () => {
  using dir = tempDir();
  const { hold, take, givenUp, collected } = await setUp(dir.path, 100);
  hold("first", "kept", blob("1", 30));
  hold("second", "kept", blob("2", 30));
  hold("in force", "needed", blob("3", 30));
  using _fits = await take("small", blob("4", 10));
  expect([givenUp, collected()]).toEqual([[], 0]);
  using _next = await take("next", blob("5", 25));
  expect([givenUp, collected()]).toEqual([[digest("first")], 1]);
});

test("what cannot fit beside what is needed is refused, and gives up nothing", async () => {
  using dir = tempDir();
  const { hold, take, givenUp } = await setUp(dir.path, 100);
  hold("kept", "kept", blob("1", 30));
  hold("in force", "needed", blob("2", 60));
  await expect(take("next", blob("3", 50))).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
  expect(givenUp).toEqual([]);
  // What both have counts once, and the refused one takes no place.
  using _shares = await take("shares", blob("2", 60), blob("4", 40));
  expect(givenUp).toEqual([digest("kept")]);
});

test("what is prepared at the same time takes its place until it ends", async () => {
  using dir = tempDir();
  const { take } = await setUp(dir.path, 100);
  const first = await take("first", blob("1", 60));
  await expect(take("second", blob("2", 60))).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
  first[Symbol.dispose]();
  using _second = await take("second", blob("2", 60));
});

test("where everything on disk and everything that comes fits, no other version is looked at", async () => {
  using dir = tempDir();
  const { hold, take, rig, givenUp } = await setUp(dir.path, 100);
  hold("wrongly large", "needed", blob("1", 1_000));
  rig.bytesMost = 40;
  using _fits = await take("next", blob("2", 60));
  expect(givenUp).toEqual([]);
  await expect(take("more", blob("3", 1))).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
});
