// disk_max holds for bodies on their way in as well: they take their room while they are written and give it back however they end.

import { expect, test } from "vitest";
import { DiskRoom, giveShare } from "../../../../src/agent/cache/index/disk-room.ts";
import { SharedHeader } from "../../../../src/agent/cache/index/shared-header.ts";
import { openWorkerCache } from "../../../../src/agent/cache/worker/worker-cache.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { begin, clear, isHit, keyOf, metaOf, openedRig, store } from "../rig.ts";

const mib = 2 ** 20;
const body = (bytes: number): Uint8Array => Buffer.alloc(bytes, 7);

test("all workers share the room; what a dead one had taken is given back, once", () => {
  const header = new SharedHeader(SharedHeader.allocate());
  const shares = [DiskRoom.allocateShare(), DiskRoom.allocateShare()] as const;
  const [one, other] = [
    new DiskRoom(header, shares[0], 1_000),
    new DiskRoom(header, shares[1], 1_000),
  ];
  expect([one.take(100), other.take(150), other.take(1), one.take(1)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  other.give(50);
  expect(header.inFlightBytes).toBe(200);
  giveShare(header, shares[0]);
  giveShare(header, shares[0]);
  expect(header.inFlightBytes).toBe(100);
  other[Symbol.dispose]();
  other.give(100); // A writer that ends later.
  expect(other.take(1)).toBe(false);
  expect(header.inFlightBytes).toBe(0);
  header.storedBytes = 900;
  const third = new DiskRoom(header, DiskRoom.allocateShare(), 1_000);
  expect([third.take(100), third.take(1), third.take(0)]).toEqual([true, false, true]);
  header.storedBytes = 950;
  expect(third.take(0)).toBe(false);
  expect(third.isShort).toBe(true);
});

test("bodies that come and do not end take a quarter of the disk at most, and their room is free again", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path, { diskMax: 16 * mib });
  const { init, port } = rig.client.workerInit();
  const other = openWorkerCache(init, port);
  await until("it sees the index", async () => (await store(other, keyOf())).kind === "stored");
  const writers = Array.from({ length: 20 }, (_, no) =>
    begin(no % 2 === 0 ? rig.cache : other, keyOf({ query: `x=${no}` })),
  );
  const taken = await Promise.all(writers.map((writer) => writer.write(body(mib))));
  expect(taken.filter((one) => one === "storing")).toHaveLength(4);
  expect(rig.header.inFlightBytes).toBe(4 * mib);
  // They do not keep out what is small.
  expect((await store(rig.cache, keyOf({ path: "/small" }))).kind).toBe("stored");
  for (const writer of writers.filter((_, no) => no % 2 === 0)) writer.abort();
  await until("the aborted have given theirs", () => rig.header.inFlightBytes === 2 * mib);
  other[Symbol.dispose]();
  expect(rig.header.inFlightBytes).toBe(0);
  for (const writer of writers) writer.abort();
  for (const end of ["stored", "blocked", "failed"]) {
    const key = keyOf({ path: `/${end}` });
    const sourceNo = rig.cache.sourceNo();
    if (end === "blocked") await clear(rig, ["path:blocked"]).applied;
    const writer = begin(rig.cache, key);
    await writer.write(body(mib));
    expect(rig.header.inFlightBytes).toBe(mib);
    const freshForS = end === "failed" ? Number.NaN : 60;
    expect((await writer.commit(metaOf({ sourceNo, freshForS }))).kind).toBe(end);
    expect(rig.header.inFlightBytes).toBe(0);
  }
  expect(rig.header.storedBytes).toBe((await rig.client.stats()).bytes);
});

test("a body on its way in has what is stored make room, before it is complete", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path, { diskMax: 4 * mib });
  // Not so many that one more, counted twice between its commit and the answer, is too many.
  for (let no = 0; no < 36; no++)
    await store(rig.cache, keyOf({ path: `/${no}` }), "b".repeat(95_000));
  const before = await rig.client.stats();
  expect(before.bytes).toBeGreaterThan(3.3 * mib);
  const isShort = (): boolean => rig.header.storedBytes + rig.header.inFlightBytes > 0.95 * 4 * mib;
  const writers = [0, 1].map((no) => begin(rig.cache, keyOf({ query: `x=${no}` })));
  for (const writer of writers)
    for (let piece = 0; piece < 5; piece++) {
      expect(await writer.write(body(100_000))).toBe("storing");
      await until("room is made", () => !isShort());
    }
  expect(rig.header.storedBytes).toBeLessThan(before.bytes - 500_000);
  expect(isHit(rig.cache, keyOf({ path: "/0" }))).toBe(false);
  for (const writer of writers) writer.abort();
});
