// Room on a disk that others fill: what is written there, how much of it there is, and how it comes back.

import { describe, expect, test } from "vitest";
import { SpoolRoom } from "../../../../src/agent/requests/spool/spool-room.ts";
import { MemoryFiles } from "../../../support/memory-files.ts";
import { SpoolRig } from "../../../support/spool-rig.ts";

const firstLane = "0000000000000001/1";
const isRoom = (path: string): boolean => path.includes("/room/");
const isSegment = (path: string): boolean => path.endsWith(".seg");

/** Room is kept, then nobody else can write a byte. */
function filled(policy: ConstructorParameters<typeof SpoolRig>[1] = {}): SpoolRig {
  const rig = new SpoolRig(2 ** 21, policy);
  for (let second = 0; second < 20; second++) rig.spool.tick();
  expect(rig.files.paths().filter(isRoom)).toHaveLength(64);
  rig.files.bytesMax = rig.files.usedBytes;
  return rig;
}

describe("a full disk", () => {
  test("costs no record while central takes them, however many come, and nobody is warned", () => {
    const rig = filled();
    const worker = rig.worker();
    for (let round = 0; round < 200; round++) {
      rig.write(worker, 30);
      rig.drain();
    }
    rig.judge();
    rig.balanced();
    expect(rig.central.records()).toHaveLength(6_000);
    expect(rig.central.gaps()).toEqual([]);
    expect(rig.notices).toEqual([]);
    expect(rig.files.usedBytes).toBeLessThanOrEqual(rig.files.bytesMax);
  });

  test("keeps what there is room for while central is away, and says why the rest is lost", () => {
    const rig = filled({ whenFull: "drop_newest" });
    const worker = rig.worker();
    for (let round = 0; round < 100; round++) rig.write(worker, 40);
    rig.balanced();
    rig.drain();
    rig.judge();
    const [gap, ...others] = rig.central.gaps();
    expect(others).toEqual([]);
    expect(gap).toEqual({ from: 2_481, to: 4_000, reason: "disk_full" });
    // 62 files of 16 KiB, for the marks have two.
    expect(rig.central.records()).toHaveLength(2_480);
    // And all of it is room again.
    rig.nowMs += 2_000;
    rig.write(worker, 30);
    rig.drain();
    expect(rig.central.gaps()).toHaveLength(1);
    expect(rig.spool.facts().balance).toMatchObject({ dropped: { disk_full: 1_520 } });
  });

  test("drops the oldest of what is in the room, where the oldest go first", () => {
    const rig = filled();
    const worker = rig.worker();
    for (let round = 0; round < 100; round++) rig.write(worker, 40);
    rig.drain();
    rig.judge();
    expect(new Set(rig.central.gaps().map(({ reason }) => reason))).toEqual(new Set(["disk_full"]));
    const newest = rig.central.records().map(({ connection }) => connection);
    expect(Math.max(...newest)).toBe(4_000);
  });

  test("lets requests through that are not served without room for their record", () => {
    const rig = filled({ whenFull: "block" });
    const worker = rig.worker();
    for (let round = 0; round < 50; round++) {
      expect(rig.write(worker, 20)).toBe(20);
      rig.drain();
    }
    expect(rig.central.records()).toHaveLength(1_000);
  });

  test("leaves the sums as they are over starts, and the reason of each loss", () => {
    const rig = filled();
    rig.write(rig.worker(), 20);
    rig.workers[0]?.drop(5);
    rig.spool.sync();
    rig.restart();
    rig.write(rig.worker(), 20);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    const { committed, dropped } = rig.spool.facts().balance;
    expect([committed, dropped]).toEqual([40, { behind: 5 }]);
  });

  test("segments are begun elsewhere again once there is room, and all of the room is kept again", () => {
    const rig = filled();
    const worker = rig.worker();
    rig.write(worker, 10);
    rig.drain();
    rig.files.bytesMax = Number.MAX_SAFE_INTEGER;
    for (let round = 0; round < 30; round++) rig.write(worker, 30);
    rig.drain();
    for (let second = 0; second < 20; second++) rig.spool.tick();
    const room = rig.files.paths().filter(isRoom);
    expect(room).toHaveLength(64);
    expect(room.map((path) => rig.files.stat(path))).toMatchObject(
      room.map(() => ({ bytes: 2 ** 14, names: 1 })),
    );
  });
});

test("the directory of the spool is made wide once, before the first file of room", () => {
  const rig = filled();
  rig.restart();
  for (let tick = 0; tick < 5; tick++) rig.spool.tick();
  expect(rig.files.operations.widenDirectory).toBe(1);
});

test("no room is taken where little is free", () => {
  const rig = new SpoolRig(2 ** 21);
  rig.files.bytesMax = rig.files.usedBytes + 5 * 64 * 2 ** 14 - 1;
  for (let second = 0; second < 20; second++) rig.spool.tick();
  expect(rig.files.paths().filter(isRoom)).toEqual([]);
});

test("zeros behind the last frame are no damage, whatever ended the process", () => {
  const rig = filled();
  rig.write(rig.worker(), 10);
  rig.write(rig.worker(), 10);
  rig.crash("kill");
  rig.crash({ powerLossKeeps: 1 });
  const segments = rig.files.paths().filter(isSegment);
  expect(segments.map((path) => rig.files.stat(path).bytes)).toEqual([2 ** 14, 2 ** 14]);
  rig.drain();
  rig.judge();
  expect(rig.central.records()).toHaveLength(20);
  expect(rig.notices).toEqual([]);
});

test("a torn frame in the room is cut off, and what is whole before it arrives", () => {
  const rig = filled();
  const worker = rig.worker();
  rig.write(worker, 10);
  const [path = ""] = rig.files.paths().filter(isSegment);
  const bytes = rig.files.content(path);
  const end = bytes.findLastIndex((byte) => byte !== 0);
  bytes.fill(0x7b, end + 200, end + 300);
  rig.crash("kill");
  rig.drain();
  rig.judge();
  expect(rig.central.lane(firstLane).records.size).toBe(10);
  expect(rig.notices).toEqual([]);
});

test("a file with a second name, and one that is too short, are no room; a longer one is cut", () => {
  const files = new MemoryFiles();
  const make = (): SpoolRoom => new SpoolRoom(files, "/spool", 2 ** 13);
  const room = make();
  for (let time = 0; time < 2; time++) room.refill();
  const [one = "", two = "", ...others] = files.paths();
  const [three = "", four = "", five = "", six = "", seven = "", eight = ""] = others;
  files.replace(eight, new Uint8Array(63));
  files.link(seven, "/spool/marks");
  files.replace(six, new Uint8Array(65).fill(1));
  const later = make();
  expect(later.open()?.path).toBe(six);
  expect(Buffer.compare(files.content(six), Buffer.alloc(64))).toBe(0);
  for (const path of [five, four, three]) expect(later.open()?.path).toBe(path);
  expect(later.open()).toBeUndefined(); // Two are for the marks.
  expect(files.paths()).toEqual([one, two, three, four, five, six, "/spool/marks"]);
});
