// What a lane's writer does with a disk that refuses: how often it asks, what it drops for it, and which files it leaves.

import { expect, test } from "vitest";
import { systemError } from "../../../support/memory-files.ts";
import { SpoolRig, type RigWorker } from "../../../support/spool-rig.ts";

const segmentsOf = (rig: SpoolRig): readonly string[] =>
  rig.files.paths().filter((path) => path.endsWith(".seg"));

/** 1,000 records in several segments, on a disk that refuses with `code` whatever more is written to any of them. */
function refusing(code: string): { readonly rig: SpoolRig; readonly worker: RigWorker } {
  const rig = new SpoolRig(2 ** 20);
  const worker = rig.worker();
  for (let i = 0; i < 20; i++) rig.write(worker, 50);
  expect(segmentsOf(rig).length).toBeGreaterThan(6);
  rig.files.fault = (operation, path) =>
    operation === "write" && path.endsWith(".seg") ? systemError(code) : undefined;
  return { rig, worker };
}

test("a full disk, however much is dropped: one group costs the three oldest segments, then its own records", () => {
  const { rig, worker } = refusing("ENOSPC");
  const before = segmentsOf(rig);
  rig.write(worker, 10);
  expect(segmentsOf(rig)).toEqual(before.slice(3));
  rig.files.fault = () => undefined;
  rig.nowMs += 1_000;
  rig.write(worker, 10);
  rig.drain();
  rig.judge();
  expect(rig.central.gaps()).toEqual([
    { from: 1, to: expect.any(Number), reason: "disk_full" },
    { from: 1_001, to: 1_010, reason: "disk_full" },
  ]);
  rig.balanced();
});

test("a disk that fails otherwise is asked twice, and then left alone for a second", () => {
  const { rig, worker } = refusing("EIO");
  const before = segmentsOf(rig);
  const writes = (): number => rig.files.operations.write ?? 0;
  const asked = (): number => {
    const earlier = writes();
    worker.accept(10);
    worker.handOver();
    return writes() - earlier;
  };
  expect(asked()).toBe(2);
  expect(segmentsOf(rig)).toEqual(before);
  rig.nowMs += 999;
  expect(asked()).toBe(0);
  rig.nowMs += 1;
  rig.files.fault = () => undefined;
  expect(asked()).toBeGreaterThan(0);
  rig.spool.sync();
  rig.drain();
  rig.judge();
  expect(rig.central.gaps()).toEqual([{ from: 1_001, to: 1_020, reason: "io_error" }]);
  rig.balanced();
});

test("segments are named by their lane, their first number and the attempt to write it", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  worker.wake();
  let failures = 1;
  rig.files.fault = (operation) =>
    operation === "datasync" && failures-- > 0 ? systemError("EIO") : undefined;
  rig.write(worker, 10);
  rig.write(rig.worker(), 10);
  expect(segmentsOf(rig)).toEqual([
    `${rig.directory}/0000000000000001-1-0000000000000001-0.seg`,
    `${rig.directory}/0000000000000001-1-0000000000000001-1.seg`,
    `${rig.directory}/0000000000000001-2-0000000000000001-0.seg`,
  ]);
});
