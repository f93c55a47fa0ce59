// The spool and the odd answers of central: refused records, lost and foreign marks, long absence.

import { describe, expect, test } from "vitest";
import { SpoolRig } from "../../support/spool-rig.ts";

const firstLane = "0000000000000001/1";

describe("central", () => {
  test("that refuses a record: found, set aside, a gap in its place, the others arrive", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 100);
    rig.central.isPoison = ({ connection }) => connection === 42 || connection === 100;
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(98);
    expect(rig.central.gaps()).toEqual([
      { from: 42, to: 42, reason: "poison" },
      { from: 100, to: 100, reason: "poison" },
    ]);
    const kept = rig.files.content(`${rig.directory}/poison.ndjson`).toString().trim().split("\n");
    expect(kept.map((line): unknown => JSON.parse(line))).toMatchObject([
      { lane: firstLane, seq: 42, why: "400: invalid", record: { connection: 42 } },
      { seq: 100 },
    ]);
    expect(rig.spool.facts().balance).toMatchObject({ committed: 98, dropped: { poison: 2 } });
  });

  test("that finds batches too large gets smaller ones", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 100);
    rig.central.linesMax = 3;
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(100);
  });

  test("that lost what it had: gets again what is here, and a gap for what is not", () => {
    const rig = new SpoolRig(2 ** 20);
    const worker = rig.worker();
    for (let i = 0; i < 20; i++) rig.write(worker, 50);
    for (let i = 0; i < 10; i++) rig.ship(firstLane, { recordsMax: 47 });
    rig.spool.persist();
    const { balance } = rig.spool.facts();
    rig.central.forget(firstLane, 20);
    rig.write(worker, 50);
    rig.drain();
    expect(rig.central.gaps()).toMatchObject([{ from: 21, reason: "released" }]);
    const [gap] = rig.central.gaps();
    expect(gap?.to).toBeLessThan(470);
    expect(rig.central.lane(firstLane).mark).toBe(1_050);
    rig.judge();
    expect(balance.committed).toBe(470);
    expect(rig.spool.facts().balance).toMatchObject({ committed: 1_050, dropped: {} });
  });

  test("that knows more of an old lane than there is: the lane is let go", () => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 10);
    rig.restart();
    rig.central.lane(firstLane).mark = 1_000;
    rig.drain();
    expect(rig.lanes()).toEqual([]);
    rig.balanced();
  });

  test("that knows more of a live lane than there is: a new lane tells what cannot be told there", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    rig.write(worker, 10);
    rig.ship(firstLane, { recordsMax: 4 });
    rig.central.lane(firstLane).mark = 1_000;
    rig.ship(firstLane);
    rig.write(worker, 10);
    rig.drain();
    const { records, gaps } = rig.central.lane("0000000000000001/2");
    expect(gaps).toEqual([{ from: 1, to: 6, reason: "conflict" }]);
    expect([...records.keys()]).toEqual([7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    expect([...records.values()].map(({ connection }) => connection)).toEqual([
      11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    ]);
    expect(rig.notices.map(({ code }) => code)).toContain("spool_conflict");
    expect(rig.spool.facts().balance).toEqual({
      accepted: 20,
      committed: 14,
      spooled: 0,
      inMemory: 0,
      dropped: { conflict: 6 },
      unproven: 0,
      unknown: 0,
    });
  });

  test("that was away: the backlog is sealed, fresh records go in a lane of their own", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    for (let i = 0; i < 10; i++) rig.write(worker, 1_000);
    rig.nowMs += 11_000;
    rig.write(worker, 10);
    expect(rig.lanes()).toHaveLength(1);
    rig.ship(firstLane);
    worker.accept(5);
    rig.write(worker, 10);
    expect(rig.lanes().map(({ lane, live }) => ({ lane, live }))).toEqual([
      { lane: "0000000000000001/2", live: true },
      { lane: firstLane, live: false },
    ]);
    rig.ship("0000000000000001/2");
    expect(rig.central.lane("0000000000000001/2").records.get(1)?.connection).toBe(10_011);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.records()).toHaveLength(10_025);
    expect(rig.central.gaps()).toMatchObject([{ from: 16, reason: "crash" }]);
  });

  test("that was away: what the worker numbered by then is told, though the process ends before it is handed over", () => {
    const rig = new SpoolRig();
    const worker = rig.worker();
    for (let i = 0; i < 10; i++) rig.write(worker, 1_000);
    rig.nowMs += 11_000;
    rig.write(worker, 10);
    rig.ship(firstLane);
    expect(rig.lanes()).toHaveLength(2);
    expect(worker.accept(5)).toBe(5);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    expect(rig.central.lane("0000000000000001/2").gaps).toMatchObject([
      { from: 1, reason: "crash" },
    ]);
  });
});
