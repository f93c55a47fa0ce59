// The spool, scenario by scenario: what central gets of it, after orderly restarts and after crashes of process, worker and machine.

import { describe, expect, test } from "vitest";
import { systemError } from "../../../support/memory-files.ts";
import { SpoolRig } from "../../../support/spool-rig.ts";

const firstLane = "0000000000000001/1";

describe("records arrive once, in order", () => {
  test("of two workers, each in a lane of its own", () => {
    const rig = new SpoolRig();
    const [one, two] = [rig.worker(), rig.worker()];
    for (let i = 0; i < 10; i++) {
      rig.write(one, 7);
      rig.write(two, 3);
    }
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(100);
    expect(rig.central.gaps()).toEqual([]);
    expect([...rig.central.lane(firstLane).records.keys()]).toEqual(
      Array.from({ length: 70 }, (_, i) => i + 1),
    );
    expect(rig.spool.facts().balance).toEqual({
      accepted: 100,
      committed: 100,
      spooled: 0,
      inMemory: 0,
      dropped: {},
      unproven: 0,
      unknown: 0,
    });
  });

  test("what is not synced is not sent", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    worker.accept(5);
    worker.handOver();
    expect(rig.ship(firstLane)).toBe(false);
    expect(rig.spool.facts().balance).toMatchObject({ accepted: 5, spooled: 0, inMemory: 5 });
    rig.spool.sync();
    expect(rig.ship(firstLane)).toBe(true);
  });

  test("after an orderly restart, without a gap and with the sums", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 40);
    rig.ship(firstLane, { recordsMax: 15 });
    rig.restart();
    expect(rig.spool.facts().balance).toMatchObject({ accepted: 40, committed: 15, spooled: 25 });
    rig.write(rig.worker(), 2);
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([]);
    expect(rig.spool.facts().balance).toMatchObject({ accepted: 42, committed: 42, spooled: 0 });
    expect(rig.lanes()).toHaveLength(1);
  });

  test("when the answer is lost: the repetition is not counted again", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 10);
    rig.ship(firstLane, { answered: false });
    rig.write(worker, 10);
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(20);
    expect(rig.spool.facts().balance).toMatchObject({ accepted: 20, committed: 20 });
  });

  test("what waits for more than ten seconds is sealed once central answers, so that fresh ones go in a lane of their own", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    for (let i = 0; i < 3; i++) rig.write(worker, 700);
    rig.nowMs += 10_000;
    rig.ship(firstLane, { recordsMax: 1 });
    expect(rig.lanes().map(({ live }) => live)).toEqual([true]);
    rig.nowMs += 1;
    rig.ship(firstLane, { recordsMax: 1 });
    expect(rig.lanes().map(({ lane, live }) => [lane, live])).toEqual([
      ["0000000000000001/2", true],
      [firstLane, false],
    ]);
  });

  test("segments are let go only after the mark is durable", () => {
    const rig = new SpoolRig(2 ** 20);
    const worker = rig.worker();
    for (let i = 0; i < 20; i++) rig.write(worker, 100);
    const before = rig.files.paths().filter((path) => path.endsWith(".seg"));
    expect(before.length).toBeGreaterThan(5);
    rig.files.fault = (operation, path) =>
      operation === "datasync" && path.endsWith("marks.tmp") ? systemError("EIO") : undefined;
    rig.drain();
    expect(rig.files.paths().filter((path) => path.endsWith(".seg"))).toEqual(before);
    rig.files.fault = () => undefined;
    rig.spool.persist();
    expect(rig.files.paths().filter((path) => path.endsWith(".seg"))).toHaveLength(1);
    rig.judge();
  });
});

test("a lane that is gone goes from the marks, too, though nothing new comes", () => {
  const rig = new SpoolRig();
  rig.write(rig.worker(), 5);
  rig.restart();
  const marks = (): string => rig.files.content(`${rig.directory}/marks`).toString("utf8");
  expect(marks()).toContain(`"${firstLane}"`);
  rig.ship(firstLane);
  for (let turns = 0; turns < 3 && rig.spool.isDirty; turns++) rig.spool.persist();
  expect(rig.spool.isDirty).toBe(false);
  expect(marks()).not.toContain(firstLane);
  rig.crash({ powerLossKeeps: 0 });
  expect(rig.lanes()).toEqual([]);
  expect(rig.spool.facts().balance).toMatchObject({ accepted: 5, committed: 5 });
});

describe("a crash", () => {
  test("loses at most what was reserved, and says so", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 30);
    const handedOver = worker.accept(4);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(30);
    expect(rig.central.gaps()).toEqual([{ from: 31, to: worker.words.reserved, reason: "crash" }]);
    expect(rig.central.lost()).toBeGreaterThanOrEqual(handedOver);
    rig.balanced();
  });

  test("of the machine keeps what was synced", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 30);
    worker.accept(20);
    worker.handOver();
    rig.crash({ powerLossKeeps: 0.5 });
    rig.drain();
    rig.judge();
    expect(rig.central.records().length).toBeGreaterThanOrEqual(30);
    expect(rig.central.gaps().map(({ reason }) => reason)).toEqual(["crash"]);
  });

  test("before anything was numbered, after another one: the same lanes, nothing twice", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 5);
    rig.crash("kill");
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(5);
    expect([...rig.central.lanes.keys()]).toEqual([firstLane]);
  });

  test("of a worker alone is told exactly", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 5);
    worker.accept(3);
    worker.words.waiting = 2;
    worker.words.seen += 2;
    rig.spool.end(worker.feed);
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([
      { from: 6, to: 8, reason: "crash" },
      { from: 9, to: 10, reason: "behind" },
    ]);
    expect(rig.spool.facts().balance).toEqual({
      accepted: 10,
      committed: 5,
      spooled: 0,
      inMemory: 0,
      dropped: { crash: 3, behind: 2 },
      unproven: 0,
      unknown: 0,
    });
  });

  test("what a later process found and sent stays found when the machine goes down", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    worker.accept(5);
    worker.handOver();
    rig.crash("kill");
    rig.ship(firstLane, { recordsMax: 5 });
    rig.crash({ powerLossKeeps: 0 });
    rig.drain();
    rig.judge();
    expect(rig.spool.facts().balance.committed).toBe(5);
    expect(rig.central.records()).toHaveLength(5);
  });

  test("again and again: each start syncs what the one before left, no more", () => {
    const rig = new SpoolRig();
    const syncsOfStart = (): number => {
      const before = rig.files.operations.datasync ?? 0;
      rig.crash("kill");
      return (rig.files.operations.datasync ?? 0) - before;
    };
    const syncs: number[] = [];
    for (let start = 0; start < 20; start++) {
      for (let no = 0; no < 3; no++) rig.write(rig.worker(), 5);
      syncs.push(syncsOfStart());
    }
    expect(rig.lanes()).toHaveLength(60);
    expect(Math.max(...syncs)).toBe(syncs[0]);
    rig.crash({ powerLossKeeps: 0 });
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(300);
  });

  test("again, of a lane that may have lost one record alone: it is synced once", () => {
    // There is room for one.
    const rig = new SpoolRig(1_100, { whenFull: "block" });
    const worker = rig.worker();
    worker.wake();
    expect(worker.words.reserved).toBe(1);
    const syncs: number[] = [];
    for (let start = 0; start < 3; start++) {
      const before = rig.files.operations.datasync ?? 0;
      rig.crash("kill");
      syncs.push((rig.files.operations.datasync ?? 0) - before);
    }
    // Of the marks each time, of the segment the first time.
    expect(syncs).toEqual([2, 1, 1]);
    rig.drain();
    expect(rig.central.gaps()).toEqual([{ from: 1, to: 1, reason: "crash" }]);
  });

  test("of the machine does not bring a lane back that was let go: nothing is counted twice", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 5);
    rig.restart();
    rig.drain();
    rig.spool.persist();
    expect(rig.lanes()).toEqual([]);
    rig.crash({ powerLossKeeps: 0 });
    rig.drain();
    expect(rig.spool.facts().balance).toMatchObject({ accepted: 5, committed: 5 });
  });

  test("with the last segment cut at any byte: what is whole before it arrives, the rest is a gap", () => {
    const sample = new SpoolRig();
    const sampleWorker = sample.worker();
    for (let i = 0; i < 3; i++) sample.write(sampleWorker, 2);
    const path = sample.files.paths().find((each) => each.endsWith(".seg")) ?? "";
    const whole = Buffer.from(sample.files.content(path));
    for (let cut = 0; cut <= whole.byteLength; cut += cut < 100 ? 1 : 7) {
      const rig = new SpoolRig();
      const worker = rig.worker();
      for (let i = 0; i < 3; i++) rig.write(worker, 2);
      rig.files.replace(path, whole.subarray(0, cut));
      rig.crash("kill");
      rig.balanced();
      rig.drain();
      const { records } = rig.central.lane(firstLane);
      expect(records.size % 2, `cut at ${cut}`).toBe(0);
      // A header that was never whole reserved nothing; else everything is accounted for.
      if (cut >= 40) rig.judge();
      if (cut === whole.byteLength) expect(records.size).toBe(6);
    }
  });
});
