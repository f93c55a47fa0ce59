// Faults in the room that is kept on a disk: each test is one.

import { describe, expect, test } from "vitest";
import { totalDropped } from "../../../../src/agent/requests/spool/gaps.ts";
import { SpoolRoom } from "../../../../src/agent/requests/spool/spool-room.ts";
import { MemoryFiles, systemError } from "../../../support/memory-files.ts";
import { SpoolRig, type RigPolicy, type RigWorker } from "../../../support/spool-rig.ts";

const isRoom = (path: string): boolean => path.includes("/room/");
const isSegment = (path: string): boolean => path.endsWith(".seg");

function kept(bytesMax = 2 ** 21, policy: Partial<RigPolicy> = {}): SpoolRig {
  const rig = new SpoolRig(bytesMax, policy);
  for (let second = 0; second < 20; second++) rig.spool.tick();
  return rig;
}
function full(rig: SpoolRig): SpoolRig {
  rig.files.bytesMax = rig.files.usedBytes;
  return rig;
}
const second = (rig: SpoolRig): void => {
  rig.nowMs += 1_000;
  rig.spool.tick();
  rig.spool.persist();
};

/** The fault lasts twenty seconds; then central takes everything, and nothing more is dropped. */
function losesNothingAfterwards(rig: SpoolRig, worker: RigWorker): void {
  for (let round = 0; round < 20; round++) {
    rig.write(worker, 3);
    second(rig);
  }
  rig.files.fault = () => undefined;
  rig.nowMs += 2_000;
  const before = totalDropped(rig.spool.facts().balance.dropped);
  for (let round = 0; round < 20; round++) {
    rig.write(worker, 20);
    rig.drain();
  }
  rig.judge();
  expect(totalDropped(rig.spool.facts().balance.dropped)).toBe(before);
}

test("a kill after numbers were reserved in room leaves no loss that is called damage", () => {
  const rig = kept(2 ** 21, { whenFull: "drop_newest" });
  const [worker, other] = [rig.worker(), rig.worker()];
  rig.write(worker, 5); // A segment elsewhere.
  full(rig);
  for (let round = 0; round < 20; round++) rig.write(other, 20); // More than the room takes.
  rig.write(worker, 5);
  while (rig.ship("0000000000000001/2"));
  rig.spool.persist();
  full(rig);
  rig.write(worker, 60); // Within the second in which nothing is tried, but numbers are reserved.
  rig.crash("kill");
  rig.drain();
  rig.judge();
  expect(rig.central.gaps().filter(({ reason }) => reason === "corrupt")).toEqual([]);
});

describe("what fails for a while takes no room for good", () => {
  test.each(["EIO", "ENOSPC"])("a rename into the spool that fails with %s", (code) => {
    const rig = full(kept(2 ** 21, { whenFull: "drop_newest" }));
    const worker = rig.worker();
    rig.files.fault = (operation, path) =>
      operation === "rename" && isRoom(path) ? systemError(code) : undefined;
    losesNothingAfterwards(rig, worker);
  });

  test.each(["stat", "open", "read", "write", "datasync", "truncate", "syncDirectory"] as const)(
    "%s fails",
    (failing) => {
      const rig = full(kept(2 ** 21, { whenFull: "drop_newest" }));
      const worker = rig.worker();
      rig.files.fault = (operation, path) =>
        operation === failing && (isRoom(path) || operation === "syncDirectory")
          ? systemError("EIO")
          : undefined;
      losesNothingAfterwards(rig, worker);
    },
  );

  test("the room cannot be listed once, at a start", () => {
    const rig = full(kept());
    rig.files.fault = (operation, path) =>
      operation === "list" && path.endsWith("/room") ? systemError("EIO") : undefined;
    rig.restart();
    rig.files.fault = () => undefined;
    second(rig);
    const worker = rig.worker();
    rig.write(worker, 20);
    rig.drain();
    rig.judge();
    expect(rig.spool.facts().balance.dropped).toEqual({});
  });

  test("marks whose rename fails leave no name behind, and no room is lost", () => {
    const rig = full(kept());
    const worker = rig.worker();
    rig.write(worker, 5);
    rig.drain();
    const before = rig.files.paths().filter(isRoom).length;
    rig.files.fault = (operation) => (operation === "rename" ? systemError("EIO") : undefined);
    for (let time = 0; time < 30; time++) second(rig);
    rig.files.fault = () => undefined;
    for (let time = 0; time < 3; time++) second(rig);
    expect(rig.files.paths().filter(isRoom).length).toBeLessThanOrEqual(before + 1);
    for (let round = 0; round < 20; round++) {
      rig.write(worker, 20);
      rig.drain();
    }
    expect(rig.spool.facts().balance.dropped).toEqual({});
  });
});

describe("requests that wait for room are let in again", () => {
  const bytesMax = 2 ** 25; // Files of 256 KiB.
  test("after a segment could not be begun in room once, where only a reservation was due", () => {
    const rig = kept(bytesMax, { whenFull: "block" });
    const worker = rig.worker();
    rig.write(worker, 5);
    full(rig);
    let failures = 1;
    rig.files.fault = (operation, path) =>
      operation === "rename" && isRoom(path) && failures-- > 0 ? systemError("EIO") : undefined;
    rig.files.bytesMax += 2 ** 20;
    let accepted = worker.accept(10_000); // All that are reserved.
    worker.handOver();
    full(rig);
    rig.spool.sync();
    rig.files.bytesMax = Number.MAX_SAFE_INTEGER;
    for (let time = 0; time < 10; time++) {
      second(rig);
      rig.drain();
    }
    expect(failures).toBeLessThan(1);
    accepted = 0;
    for (let time = 0; time < 10; time++) accepted += rig.write(worker, 100);
    expect(accepted).toBe(1_000);
  });
});

test("requests are let in again once the disk has room, also where a segment in room has too little", () => {
  const rig = full(kept(2 ** 22, { whenFull: "block" }));
  const worker = rig.worker();
  rig.write(worker, 5);
  rig.files.fault = (operation) => (operation === "write" ? systemError("EIO") : undefined);
  worker.accept(5);
  worker.handOver();
  rig.spool.sync();
  rig.files.fault = () => undefined;
  rig.files.bytesMax = Number.MAX_SAFE_INTEGER;
  for (let time = 0; time < 10; time++) {
    second(rig);
    rig.drain();
  }
  let accepted = 0;
  for (let time = 0; time < 10; time++) accepted += rig.write(worker, 50);
  expect(accepted).toBe(500);
});

test("a group that is larger than its empty segment in room goes elsewhere once the disk has room", () => {
  const rig = full(kept());
  const worker = rig.worker();
  worker.wake();
  rig.files.bytesMax = rig.files.usedBytes + 2 ** 17;
  rig.write(worker, 200);
  rig.drain();
  expect(rig.spool.facts().balance.dropped).toEqual({});
});

test("starts on a full disk cost no room", () => {
  const rig = full(kept());
  const counts: number[] = [];
  for (let start = 0; start < 12; start++) {
    rig.write(rig.worker(), 10);
    rig.drain();
    rig.restart();
    rig.drain();
    counts.push(rig.files.paths().filter(isRoom).length);
  }
  expect(new Set(counts.slice(1)).size).toBe(1);
  rig.judge();
  expect(rig.spool.facts().balance.dropped).toEqual({});
});

test("marks that are replaced after a start leave as many files of room as there were", () => {
  const files = new MemoryFiles();
  const make = (): SpoolRoom => new SpoolRoom(files, "/spool", 2 ** 10);
  const room = make();
  for (let time = 0; time < 16; time++) room.refill();
  files.bytesMax = files.usedBytes;
  room.replace("/spool/marks", Buffer.from("1"));
  for (let start = 0; start < 4; start++) {
    files.bytesMax = files.usedBytes;
    make().replace("/spool/marks", Buffer.from("2"));
    expect(files.paths().filter(isRoom)).toHaveLength(63);
  }
});

test("a torn tail costs no room", () => {
  const rig = full(kept());
  for (let start = 0; start < 12; start++) {
    rig.write(rig.worker(), 10);
    const path = rig.files.paths().findLast(isSegment);
    expect(path).toBeDefined();
    const bytes = rig.files.content(path ?? "");
    const end = bytes.findLastIndex((byte) => byte !== 0);
    bytes.fill(0x7b, end + 200, end + 300);
    rig.crash("kill");
    rig.drain();
    rig.files.bytesMax = Math.min(rig.files.bytesMax, rig.files.usedBytes);
  }
  rig.judge();
  expect(rig.spool.facts().balance.dropped).toEqual({});
});

test("more lanes than fifteen have more files, and each lane has one", () => {
  const rig = kept();
  const workers = Array.from({ length: 20 }, () => rig.worker());
  for (let tick = 0; tick < 20; tick++) second(rig);
  expect(rig.files.paths().filter(isRoom)).toHaveLength(4 * 20 + 4);
  full(rig);
  for (let round = 0; round < 20; round++) {
    for (const worker of workers) rig.write(worker, 3);
    rig.drain();
    rig.nowMs += 1_000;
    rig.spool.tick();
  }
  rig.judge();
  expect(rig.spool.facts().balance.dropped).toEqual({});
});

test("a file that was longer than room is no longer once it is room", () => {
  const files = new MemoryFiles();
  const room = new SpoolRoom(files, "/spool", 2 ** 30);
  const file = files.create("/spool/a.seg");
  files.write(file, new Uint8Array(2 ** 22), 0);
  files.close(file);
  expect(room.keep("/spool/a.seg")).toBe(true);
  expect(files.usedBytes).toBe(room.fileBytes);
});
