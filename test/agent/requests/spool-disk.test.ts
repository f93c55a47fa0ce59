// The spool on disks that damage, that are full and that fail: it goes on, keeps what it can, and tells central what it could not.

import { describe, expect, test } from "vitest";
import { systemError } from "../../support/memory-files.ts";
import { SpoolRig } from "../../support/spool-rig.ts";

const firstLane = "0000000000000001/1";

describe("damage", () => {
  const damage = (rig: SpoolRig, at: (bytes: Buffer) => number): string => {
    const path = rig.files.paths().find((each) => each.endsWith(".seg")) ?? "";
    const bytes = rig.files.content(path);
    bytes[at(bytes)] = (bytes[at(bytes)] ?? 0) ^ 0xff;
    return path;
  };

  test("in the middle: set aside, a gap in its place, what is behind it arrives", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    for (let i = 0; i < 3; i++) rig.write(worker, 10);
    damage(rig, (bytes) => Math.floor(bytes.byteLength / 2));
    rig.restart();
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 11, to: 20, reason: "corrupt" }]);
    expect(rig.central.records()).toHaveLength(20);
    expect(rig.files.paths().filter((path) => path.includes("/corrupt/"))).toHaveLength(1);
    expect(rig.notices.map(({ code }) => code)).toContain("spool_damaged");
    expect(rig.spool.facts().balance).toMatchObject({ committed: 20, dropped: { corrupt: 10 } });
    rig.balanced();
  });

  test("in the middle, and the process is killed once central has the gap: it is counted as a gap", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    for (let i = 0; i < 3; i++) rig.write(worker, 10);
    damage(rig, (bytes) => Math.floor(bytes.byteLength / 2));
    rig.restart();
    rig.ship(firstLane, { answered: false });
    expect(rig.central.gaps()).toEqual([{ from: 11, to: 20, reason: "corrupt" }]);
    rig.crash("kill");
    rig.spool.confirm(firstLane, rig.central.lane(firstLane).mark);
    expect(rig.spool.facts().balance).toMatchObject({ committed: 20, dropped: { corrupt: 10 } });
    rig.drain();
    rig.judge();
    rig.balanced();
  });

  test("behind what central has: what central has stays committed", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    for (let i = 0; i < 3; i++) rig.write(worker, 10);
    rig.restart();
    rig.ship(firstLane, { answered: false });
    damage(rig, (bytes) => Math.floor(bytes.byteLength / 2));
    rig.crash("kill");
    rig.spool.confirm(firstLane, rig.central.lane(firstLane).mark);
    expect(rig.central.gaps()).toEqual([]);
    expect(rig.spool.facts().balance).toMatchObject({ committed: 30, dropped: {} });
    rig.balanced();
  });

  test("of a header: its records arrive, as much as may have been reserved is told", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 10);
    damage(rig, () => 3);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(10);
    expect(rig.central.gaps()).toMatchObject([{ from: 11, reason: "crash" }]);
  });

  test("of the marks: central is asked, nothing arrives twice", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 50);
    rig.ship(firstLane, { recordsMax: 20 });
    rig.spool.persist();
    rig.files.replace(`${rig.directory}/marks`, Buffer.from("deadbeef\n{}\n"));
    rig.restart();
    rig.files.replace(`${rig.directory}/marks`, Buffer.from("deadbeef\n{}\n"));
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(50);
    expect(rig.central.gaps()).toEqual([]);
    rig.balanced();
  });

  test("in a large segment, which is read piece by piece: only what is damaged is lost", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    for (let i = 0; i < 40; i++) rig.write(worker, 250);
    damage(rig, (bytes) => Math.floor(bytes.byteLength / 2));
    damage(rig, (bytes) => 2 ** 20 + Math.floor(bytes.byteLength / 100));
    rig.restart();
    rig.drain();
    rig.judge();
    expect(new Set(rig.central.gaps().map(({ reason }) => reason))).toEqual(new Set(["corrupt"]));
    expect(rig.central.lost()).toBeLessThanOrEqual(500);
    expect(rig.central.records().length + rig.central.lost()).toBe(10_000);
    const kept = rig.files.paths().filter((path) => path.includes("/corrupt/"));
    expect(kept).toHaveLength(2);
  });

  test("of a segment that is gone: a gap", () => {
    const rig = new SpoolRig(2 ** 20);
    const worker = rig.worker();
    for (let i = 0; i < 20; i++) rig.write(worker, 50);
    const [, second = ""] = rig.files.paths().filter((path) => path.endsWith(".seg"));
    rig.files.unlink(second);
    rig.restart();
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toHaveLength(1);
    rig.balanced();
  });
});

describe("a spool that is full", () => {
  test("drops the oldest segments, and says which", () => {
    const rig = new SpoolRig(2 ** 18);
    const worker = rig.worker();
    for (let i = 0; i < 100; i++) rig.write(worker, 20);
    // Half as much is kept as room beside it.
    expect(rig.files.usedBytes).toBeLessThan(1.5 * 2 ** 18 + 10_000);
    rig.balanced();
    rig.drain();
    rig.judge();
    const [gap, ...others] = rig.central.gaps();
    expect(gap).toMatchObject({ from: 1, reason: "dropped_oldest" });
    expect(others).toEqual([]);
    expect(rig.spool.facts().balance).toMatchObject({
      accepted: 2_000,
      committed: rig.central.records().length,
      dropped: { dropped_oldest: gap?.to },
    });
    expect(rig.notices.at(-1)).toMatchObject({ code: "spool_full" });
    rig.nowMs += 61_000;
    rig.spool.tick();
    expect(rig.notices.at(-1)).toMatchObject({ code: "spool_full", text: undefined });
  });

  test("keeps what is on its way: a lost answer does not make a gap of what central has", () => {
    const rig = new SpoolRig(2 ** 18);
    const worker = rig.worker();
    rig.write(worker, 100);
    rig.ship(firstLane, { answered: false });
    for (let i = 0; i < 100; i++) rig.write(worker, 20);
    rig.drain();
    rig.judge();
    expect(rig.central.records().filter(({ connection }) => connection <= 100)).toHaveLength(100);
    expect(rig.spool.facts().balance.committed).toBe(rig.central.records().length);
    expect(rig.central.lost()).toBe(rig.spool.facts().balance.dropped.dropped_oldest);
  });

  test("keeps it over a crash as well", () => {
    const rig = new SpoolRig(2 ** 18);
    rig.write(rig.worker(), 100);
    rig.ship(firstLane, { answered: false });
    rig.crash("kill");
    const worker = rig.worker();
    for (let i = 0; i < 100; i++) rig.write(worker, 20);
    rig.drain();
    rig.judge();
    expect(rig.central.lane(firstLane).records.size).toBe(100);
    expect(rig.spool.facts().balance.committed).toBe(rig.central.records().length);
  });
});

describe("a disk that fails", () => {
  test("without space: goes on, tells what it lost, works again", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 10);
    rig.files.bytesMax = rig.files.usedBytes + 100;
    for (let i = 0; i < 5; i++) rig.write(worker, 10);
    rig.balanced();
    expect(rig.notices.at(-1)).toMatchObject({ code: "spool_failing" });
    rig.files.bytesMax = 2 ** 30;
    rig.nowMs += 2_000;
    rig.write(worker, 10);
    // What finds room once is not yet a disk that works.
    rig.spool.tick();
    expect(rig.notices.at(-1)).toMatchObject({ text: expect.stringContaining("ENOSPC") });
    rig.nowMs += 20_000;
    rig.spool.tick();
    expect(rig.notices.at(-1)).toEqual({
      code: "spool_failing",
      severity: "error",
      text: undefined,
    });
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 11, to: 60, reason: "disk_full" }]);
    rig.balanced();
  });

  test("without space but with old segments: the old ones go first", () => {
    const rig = new SpoolRig(2 ** 20);
    const worker = rig.worker();
    for (let i = 0; i < 20; i++) rig.write(worker, 50);
    rig.files.bytesMax = rig.files.usedBytes + 500;
    for (let i = 0; i < 5; i++) rig.write(worker, 50);
    rig.files.bytesMax = 2 ** 30;
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toMatchObject([{ from: 1, reason: "disk_full" }]);
  });

  test("whose sync fails: the same records go into a new file, none is lost", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 10);
    let failures = 1;
    rig.files.fault = (operation) =>
      operation === "datasync" && failures-- > 0 ? systemError("EIO") : undefined;
    rig.write(worker, 10);
    expect(rig.files.paths().filter((path) => path.endsWith(".seg"))).toHaveLength(2);
    rig.write(worker, 10);
    rig.crash({ powerLossKeeps: 0 });
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(30);
  });

  test("whose syncs keep failing: what was not synced is told as lost", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 10);
    rig.files.fault = (operation) => (operation === "datasync" ? systemError("EIO") : undefined);
    rig.write(worker, 10);
    rig.balanced();
    rig.files.fault = () => undefined;
    rig.nowMs += 2_000;
    rig.write(worker, 10);
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 11, to: 20, reason: "io_error" }]);
  });

  test("whose sync fails for the first records of a segment", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    worker.wake();
    let failures = 1;
    rig.files.fault = (operation) =>
      operation === "datasync" && failures-- > 0 ? systemError("EIO") : undefined;
    rig.write(worker, 10);
    rig.write(worker, 10);
    rig.crash({ powerLossKeeps: 0 });
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(20);
  });

  test("that refuses everything from the start: the spool starts, counts, tells", () => {
    const rig = new SpoolRig();
    rig.files.fault = (operation) => (operation === "read" ? undefined : systemError("EROFS"));
    rig.crash("kill");
    const worker = rig.worker();
    for (let i = 0; i < 4; i++) rig.write(worker, 500);
    rig.balanced();
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 1, to: 2_000, reason: "io_error" }]);
  });

  test("that cannot be read for a moment: later; for good: a gap", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 10);
    let failures = 1;
    rig.files.fault = (operation) =>
      operation === "read" && failures-- > 0 ? systemError("EIO") : undefined;
    expect(() => rig.ship(firstLane)).toThrow("EIO");
    rig.drain();
    expect(rig.central.records()).toHaveLength(10);
    rig.files.fault = () => undefined;
    const other = rig.worker();
    rig.write(other, 10);
    rig.files.fault = (operation) => (operation === "read" ? systemError("EIO") : undefined);
    const ship = (): boolean => rig.ship("0000000000000001/2");
    expect(ship).toThrow("EIO");
    expect(ship).toThrow("EIO");
    expect(ship()).toBe(true);
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 1, to: 10, reason: "corrupt" }]);
  });

  test.each(["EMFILE", "ENFILE", "ENOMEM", "EACCES"])(
    "a host that cannot open its files (%s): all is there when it can again",
    (code) => {
      const rig = new SpoolRig();
      rig.write(rig.worker(), 10);
      rig.files.fault = (operation) => (operation === "read" ? systemError(code) : undefined);
      for (let attempt = 0; attempt < 10; attempt++)
        expect(() => rig.ship(firstLane)).toThrow(code);
      rig.files.fault = () => undefined;
      rig.drain();
      rig.judge();
      expect([rig.central.records().length, rig.central.gaps()]).toEqual([10, []]);
    },
  );
});
