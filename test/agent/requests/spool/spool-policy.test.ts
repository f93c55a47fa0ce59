// What gives when there is no room for records, and what a power loss costs: each policy over the spool, step by step.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  sampledOf,
  Sampler,
  takeLines,
} from "../../../../src/agent/requests/spool/spool-policy.ts";
import { requestRecord } from "../../../support/request-records.ts";
import { SpoolRig } from "../../../support/spool-rig.ts";

const firstLane = "0000000000000001/1";
const room = 2 ** 18;

describe("drop_newest", () => {
  test("keeps what is there and tells what came later", () => {
    const rig = new SpoolRig(room, { whenFull: "drop_newest" });
    const worker = rig.worker();
    for (let i = 0; i < 100; i++) rig.write(worker, 20);
    expect(rig.files.usedBytes).toBeLessThan(room + 10_000);
    rig.balanced();
    expect(rig.notices.at(-1)).toMatchObject({ code: "spool_full" });
    rig.drain();
    rig.judge();
    const [gap, ...others] = rig.central.gaps();
    expect(others).toEqual([]);
    expect(gap).toMatchObject({ to: 2_000, reason: "spool_full" });
    expect([...rig.central.lane(firstLane).records.keys()].at(-1)).toBe((gap?.from ?? 0) - 1);
    rig.write(worker, 20);
    rig.drain();
    expect(rig.central.lane(firstLane).records.has(2_020)).toBe(true);
  });

  test("on a full disk drops no old segment either", () => {
    const rig = new SpoolRig(2 ** 20, { whenFull: "drop_newest" });
    const worker = rig.worker();
    for (let i = 0; i < 20; i++) rig.write(worker, 50);
    rig.files.bytesMax = rig.files.usedBytes + 500;
    for (let i = 0; i < 5; i++) rig.write(worker, 50);
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 1_001, to: 1_250, reason: "disk_full" }]);
  });
});

describe("sample", () => {
  test("above 80 % of the room one in ten is kept, above 95 % one in a hundred, each gap told", () => {
    const rig = new SpoolRig(2 ** 20, { whenFull: "sample" });
    const worker = rig.worker();
    for (let i = 0; i < 60; i++) rig.write(worker, 200);
    rig.balanced();
    rig.spool.tick();
    const { balance } = rig.spool.facts();
    expect(Object.keys(balance.dropped)).toEqual(["sampled"]);
    rig.drain();
    rig.judge();
    const kept = [...rig.central.lane(firstLane).records.keys()];
    const gaps = rig.central.gaps();
    expect(new Set(gaps.map(({ reason }) => reason))).toEqual(new Set(["sampled"]));
    expect(rig.central.lost()).toBe(balance.dropped.sampled);
    expect(kept.length + rig.central.lost()).toBe(12_000);
    const sizes = gaps.map(({ from, to }) => to - from + 1);
    expect(sizes).toContain(9);
    expect(Math.max(...sizes)).toBeGreaterThanOrEqual(99);
  });

  test("when it is full the oldest goes, as always", () => {
    const rig = new SpoolRig(room, { whenFull: "sample" });
    const worker = rig.worker();
    for (let i = 0; i < 400; i++) rig.write(worker, 200);
    expect(rig.spool.facts().bytes).toBeLessThanOrEqual(room);
    rig.drain();
    rig.judge();
    expect(rig.spool.facts().balance.dropped.dropped_oldest).toBeGreaterThan(0);
  });

  test("a crash does not spoil the reason: gaps are on disk, not only in memory", () => {
    const rig = new SpoolRig(room, { whenFull: "sample" });
    const worker = rig.worker();
    for (let i = 0; i < 20; i++) rig.write(worker, 60);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    const reasons = rig.central.gaps().map(({ reason }) => reason);
    expect(new Set(reasons)).toEqual(new Set(["sampled", "crash"]));
    expect(reasons.filter((reason) => reason === "crash")).toHaveLength(1);
  });

  test("a canary is kept whatever happens", () => {
    const rig = new SpoolRig(2 ** 20, { whenFull: "sample" });
    const worker = rig.worker();
    for (let i = 0; i < 50; i++) rig.write(worker, 200);
    const { feed } = rig.worker();
    const payload = new TextEncoder().encode('{"canary":{"at":1}}\n');
    for (let seq = 1; seq <= 20; seq++)
      rig.spool.receive(feed, { type: "group", firstSeq: seq, count: 1, payload });
    rig.spool.sync();
    expect(rig.lanes().at(-1)?.balance).toMatchObject({ spooled: 20, dropped: {} });
  });
});

describe("the sampler", () => {
  test("by how full the spool is", () => {
    expect([0, 0.8, 0.81, 0.95, 0.96, 2].map(sampledOf)).toEqual([1, 1, 10, 10, 100, 100]);
  });

  test("keeps one of so many, however records are grouped", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 512 }), { maxLength: 60 }),
        fc.constantFrom(1, 10, 100),
        fc.nat(3_000),
        (groups, oneOf, gaps) => {
          const sampler = new Sampler();
          const runs = groups.flatMap((count) => {
            const taken = sampler.take(count, oneOf, gaps);
            expect(taken.reduce((sum, run) => sum + run.count, 0)).toBe(count);
            return taken;
          });
          const total = groups.reduce((sum, count) => sum + count, 0);
          const kept = runs.reduce((sum, run) => sum + (run.isKept ? run.count : 0), 0);
          const runLength = 2 ** Math.floor(gaps / 256);
          expect(kept).toBeGreaterThanOrEqual(Math.floor(total / oneOf) - runLength * oneOf);
          expect(kept).toBeLessThanOrEqual(Math.ceil(total / oneOf) + runLength);
        },
      ),
    );
  });

  test("cuts lines", () => {
    const lines = new TextEncoder().encode("a\nbb\nccc\n");
    const text = (from: number, count: number): string =>
      new TextDecoder().decode(takeLines(lines, from, count));
    expect([text(0, 2), text(2, 1), text(5, 9)]).toEqual(["a\nbb\n", "bb\n", "ccc\n"]);
  });
});

describe("block", () => {
  test("gives out numbers only with room, drops nothing, goes on when there is room again", () => {
    const rig = new SpoolRig(room, { whenFull: "block" });
    const worker = rig.worker();
    let written = 0;
    for (let i = 0; i < 100; i++) written += rig.write(worker, 20);
    expect(written).toBeGreaterThan(200);
    expect(written).toBeLessThan(1_000);
    expect(rig.spool.facts().bytes).toBeLessThanOrEqual(room + 8_192);
    expect(rig.write(worker, 1)).toBe(0);
    expect(rig.notices.at(-1)).toMatchObject({ code: "spool_blocking", severity: "error" });
    expect(rig.spool.facts().isBlocking).toBe(true);
    expect(rig.spool.facts().balance).toMatchObject({ accepted: written, dropped: {} });

    rig.drain();
    expect(rig.write(worker, 20)).toBe(20);
    rig.nowMs += 6_000;
    rig.spool.tick();
    expect(rig.notices.at(-1)).toMatchObject({ code: "spool_blocking", text: undefined });
    expect(rig.spool.facts().isBlocking).toBe(false);
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([]);
    expect(rig.central.records()).toHaveLength(written + 20);
  });

  test("with the largest records as well: what was given out before is taken back as room goes", () => {
    const rig = new SpoolRig(2 ** 22, { whenFull: "block" });
    const worker = rig.worker();
    worker.wake();
    const { feed, words } = worker;
    const longPath = `/${"x".repeat(8_000)}`;
    let no = 0;
    for (; no < 2_000 && words.reserved > no; no++) {
      rig.nowMs += 1;
      const line = `${JSON.stringify(requestRecord(no, { uri_path: longPath }))}\n`;
      const payload = new TextEncoder().encode(line);
      rig.spool.receive(feed, { type: "group", firstSeq: no + 1, count: 1, payload });
      words.accepted = words.seen = no + 1;
      rig.spool.sync();
    }
    expect(rig.spool.facts().bytes).toBeGreaterThan(2 ** 21);
    expect(rig.spool.facts().bytes).toBeLessThanOrEqual(2 ** 22 + 2 * 8_192);
    rig.drain();
    expect(words.reserved).toBeGreaterThan(no);
    expect(rig.central.records()).toHaveLength(no);
  });

  test("while the disk fails no number is given out; a second later it is asked again", () => {
    const rig = new SpoolRig(2 ** 24, { whenFull: "block" });
    const worker = rig.worker();
    rig.write(worker, 10);
    rig.files.bytesMax = rig.files.usedBytes + 100;
    rig.write(worker, 10);
    expect(rig.write(worker, 1)).toBe(0);
    const codes = rig.notices.map(({ code }) => code);
    expect(codes).toContain("spool_failing");
    expect(codes).toContain("spool_blocking");
    for (let second = 0; second < 5; second++) {
      rig.nowMs += 1_001;
      rig.spool.tick();
      expect(rig.write(worker, 1)).toBe(0);
    }
    // Less than what the worker may number: not enough to begin with.
    rig.files.bytesMax += 20_000;
    rig.nowMs += 1_001;
    rig.spool.tick();
    expect(rig.write(worker, 1)).toBe(0);
    rig.files.bytesMax = 2 ** 30;
    rig.nowMs += 1_001;
    rig.spool.tick();
    expect(rig.write(worker, 30)).toBe(30);
    rig.balanced();
    rig.drain();
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 11, to: 20, reason: "disk_full" }]);
    rig.nowMs += 20_000;
    rig.spool.tick();
    expect(rig.notices.findLast(({ code }) => code === "spool_failing")).toMatchObject({
      text: undefined,
    });
  });

  test("on a disk that fails from the start nobody is served, until it works", () => {
    const rig = new SpoolRig(2 ** 24, { whenFull: "block" });
    rig.files.bytesMax = 0;
    const worker = rig.worker();
    expect(rig.write(worker, 1)).toBe(0);
    rig.files.bytesMax = 2 ** 30;
    rig.nowMs += 1_001;
    rig.spool.tick();
    expect(rig.write(worker, 5)).toBe(5);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(5);
  });
});

describe("relaxed", () => {
  const options = { durability: "relaxed" } as const;

  test("one sync a second, and records are sent before it", () => {
    const rig = new SpoolRig(2 ** 30, options);
    const worker = rig.worker();
    const syncs = (): number => rig.files.operations.datasync ?? 0;
    rig.write(worker, 1);
    const before = syncs();
    for (let i = 0; i < 50; i++) rig.write(worker, 1);
    expect(syncs()).toBe(before);
    rig.ship(firstLane);
    expect(rig.central.records()).toHaveLength(51);
    rig.nowMs += 1_001;
    rig.spool.tick();
    expect(syncs()).toBeGreaterThan(before);
  });

  test("a kill loses nothing that was handed over", () => {
    const rig = new SpoolRig(2 ** 30, options);
    const worker = rig.worker();
    for (let i = 0; i < 5; i++) rig.write(worker, 10);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(50);
  });

  test("a power loss takes the last second: told as a crash, but for what central has", () => {
    const rig = new SpoolRig(2 ** 30, options);
    const worker = rig.worker();
    rig.nowMs += 5_000;
    rig.write(worker, 10);
    for (let i = 0; i < 3; i++) rig.write(worker, 10);
    rig.ship(firstLane, { recordsMax: 25 });
    rig.write(worker, 10);
    rig.crash({ powerLossKeeps: 0 });
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(25);
    const [gap, ...others] = rig.central.gaps();
    expect(others).toEqual([]);
    expect(gap).toMatchObject({ from: 26, reason: "crash" });
    const { committed, unproven } = rig.spool.facts().balance;
    expect(committed).toBe(25);
    expect(unproven).toBe(rig.central.lost());
  });

  test("a sync that fails late does not take back what is on its way", () => {
    const rig = new SpoolRig(2 ** 30, options);
    const worker = rig.worker();
    rig.write(worker, 1);
    rig.write(worker, 10);
    rig.ship(firstLane, { answered: false });
    rig.files.fault = (operation) =>
      operation === "datasync" || operation === "create"
        ? Object.assign(new Error("EIO"), { code: "EIO" })
        : undefined;
    rig.nowMs += 1_001;
    rig.spool.tick();
    rig.files.fault = () => undefined;
    rig.nowMs += 2_000;
    rig.write(worker, 10);
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(21);
    expect(rig.spool.facts().balance).toMatchObject({ committed: 21, dropped: {} });
  });
});
