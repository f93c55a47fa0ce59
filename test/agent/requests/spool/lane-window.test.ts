// How much a crash may tell as lost: few numbers in a lane that rests, as many as a busy one needs, and never fewer than were lost.

import { expect, test } from "vitest";
import {
  LaneWindow,
  SlowSyncs,
  windowAtRest,
  windowMax,
  windowMin,
} from "../../../../src/agent/requests/spool/lane-window.ts";
import { SpoolRig } from "../../../support/spool-rig.ts";

test("a window is what a rate or a burst asks for, between its bounds", () => {
  const window = new LaneWindow();
  expect(window).toMatchObject({ size: 0, isAwake: false });
  window.wake();
  expect(window).toMatchObject({ size: windowMin, isAwake: true });
  window.came(100, 5);
  window.received(100, 5);
  expect(window.size).toBe(3_200);
  for (let ms = 10, seq = 100; ms <= 1_000; ms += 5) {
    window.came(10, 5);
    window.received((seq += 10), ms);
  }
  expect(window.size).toBe(4_000);
  window.came(98_000, 5);
  window.received(100_000, 1_005);
  expect(window.size).toBe(windowMax);
  window.narrow(windowAtRest);
  expect(window).toMatchObject({ size: windowAtRest, isAwake: false });
});

test("what was kept back while a disk was slow is no burst, nor is what was dropped then", () => {
  const window = new LaneWindow();
  window.wake();
  window.came(500, 1_000);
  window.received(500, 1_000);
  expect(window.size).toBe(1_000);
  window.received(5_000, 1_010);
  expect(window.size).toBe(1_000);
});

test("a disk that is slow gets more ahead, for a minute", () => {
  const syncs = new SlowSyncs();
  expect(syncs.windowLeast()).toBe(windowMin);
  syncs.took(12, 0);
  syncs.took(1, 1_000);
  expect(syncs.windowLeast()).toBe(600);
  syncs.took(1, 60_001);
  expect(syncs.windowLeast()).toBe(windowMin);
  syncs.took(10_000, 60_002);
  expect(syncs.windowLeast()).toBe(2_048);
});

test("a quiet lane's crash is told as few; what it gave back it never uses", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  for (let i = 0; i < 20; i++) rig.write(worker, 200);
  expect(worker.words.reserved).toBeGreaterThan(4_000 + 1_000);
  worker.rest();
  expect(worker.words.reserved).toBe(4_000 + windowAtRest);
  expect(worker.words.quieted).toBe(1);
  rig.crash({ powerLossKeeps: 0 });
  rig.drain();
  rig.judge();
  expect(rig.central.gaps()).toEqual([{ from: 4_001, to: 4_000 + windowAtRest, reason: "crash" }]);
});

test("a lane to which less comes than before tells of fewer at a crash, and never of fewer than were lost", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  for (let i = 0; i < 20; i++) rig.write(worker, 500);
  expect(worker.words.reserved - 10_000).toBeGreaterThan(15_000);
  for (let i = 0; i < 2; i++) {
    rig.nowMs += 1_000;
    rig.write(worker, 5);
  }
  worker.giveBack(2_048);
  expect(worker.words).toMatchObject({ reserved: 10_010 + 2_048, quieted: 1 });
  rig.nowMs += 1_000;
  rig.write(worker, 5);
  const lost = worker.accept(20);
  rig.crash("kill");
  rig.drain();
  rig.judge();
  expect(rig.central.lost()).toBeGreaterThanOrEqual(lost);
  expect(rig.central.lost()).toBeLessThanOrEqual(2_048);
});

test("a lane that nothing came to costs nothing at a crash, nor one that was woken for nothing", () => {
  const rig = new SpoolRig();
  rig.worker();
  const woken = rig.worker();
  woken.wake();
  expect(woken.words.reserved).toBe(windowMin);
  woken.rest();
  expect(woken.words.reserved).toBe(0);
  rig.crash("kill");
  rig.drain();
  expect(rig.central.gaps()).toEqual([]);
  expect(rig.spool.facts().balance).toMatchObject({ accepted: 0, unproven: 0 });
});

test("an idle lane takes nothing more from the disk, record by record", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  for (let i = 0; i < 10; i++) {
    rig.nowMs += 10_000;
    rig.write(worker, 1);
    worker.rest();
    expect(worker.words.reserved).toBe(i + 1 + windowAtRest);
  }
  rig.crash("kill");
  rig.drain();
  expect(rig.central.records()).toHaveLength(10);
  expect(rig.central.lost()).toBe(windowAtRest);
});

test("a lane that gave back what it can writes nothing when it is asked to again", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  for (let i = 0; i < 20; i++) rig.write(worker, 200);
  worker.rest();
  const { reserved } = worker.words;
  const before = { ...rig.files.operations };
  rig.spool.receive(worker.feed, { type: "quiet", through: reserved, rests: true });
  expect(rig.files.operations).toEqual(before);
  expect(worker.words).toMatchObject({ reserved, quieted: 2 });
});

test("when the disk refuses the smaller reservation, the larger one is told", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  for (let i = 0; i < 20; i++) rig.write(worker, 200);
  const reserved = worker.words.reserved;
  rig.files.fault = (operation) =>
    operation === "write" ? Object.assign(new Error("EIO"), { code: "EIO" }) : undefined;
  worker.rest();
  expect(worker.words.reserved).toBe(reserved);
  expect(worker.words.quieted).toBe(1);
  rig.files.fault = () => undefined;
  const accepted = worker.accept(1_000);
  rig.crash("kill");
  rig.drain();
  rig.judge();
  expect(rig.central.lost()).toBeGreaterThanOrEqual(accepted);
});
