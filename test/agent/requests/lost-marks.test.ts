// spool/marks lost, torn or from before: central is asked, nothing arrives twice, and what is lost is told although only the marks knew of it.

import { describe, expect, test } from "vitest";
import { SpoolRig } from "../../support/spool-rig.ts";

const room = 2 ** 18;
const firstLane = "0000000000000001/1";

type Damage = (rig: SpoolRig, older: Buffer) => void;
const marksOf = ({ directory }: SpoolRig): string => `${directory}/marks`;

/** It is one segment, and was answered, so that it is the first to go. */
function dropFirstLane(rig: SpoolRig): void {
  rig.ship(firstLane, { recordsMax: 5 });
  const worker = rig.worker();
  for (let i = 0; i < 100; i++) rig.write(worker, 20);
  const lane = rig.lanes().find(({ lane: id }) => id === firstLane);
  expect(lane?.balance.dropped.dropped_oldest).toBe(45);
}

const damages: readonly (readonly [string, Damage])[] = [
  ["missing", (rig) => rig.files.unlink(marksOf(rig))],
  [
    "torn",
    (rig) => rig.files.replace(marksOf(rig), rig.files.content(marksOf(rig)).subarray(0, 40)),
  ],
  ["noise", (rig) => rig.files.replace(marksOf(rig), Buffer.alloc(700, 0xa7))],
  ["empty", (rig) => rig.files.replace(marksOf(rig), Buffer.alloc(0))],
  ["from before", (rig, older) => rig.files.replace(marksOf(rig), older)],
];

describe.each(damages)("marks %s", (_, damage) => {
  test("with a backlog of several lanes, partly at central", () => {
    const rig = new SpoolRig();
    const one = rig.worker();
    rig.write(one, 30);
    rig.spool.persist();
    const older = Buffer.from(rig.files.content(marksOf(rig)));
    for (const { lane } of rig.lanes()) rig.ship(lane, { recordsMax: 10 });
    rig.crash("kill");
    const two = rig.worker();
    rig.write(two, 20);
    for (const { lane } of rig.lanes()) rig.ship(lane, { recordsMax: 15, answered: false });
    rig.spool.persist();
    damage(rig, older);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    rig.balanced();
    expect(rig.lostAfterAll()).toEqual([]);
  });

  test("and of an earlier run all was dropped", () => {
    const rig = new SpoolRig(room);
    rig.write(rig.worker(), 50);
    rig.spool.persist();
    const older = Buffer.from(rig.files.content(marksOf(rig)));
    rig.restart();
    dropFirstLane(rig);
    damage(rig, older);
    rig.crash("kill");
    rig.drain();
    rig.judge();
    rig.balanced();
  });
});

test("the trace of a lane that was dropped whole is gone once central knows", () => {
  const rig = new SpoolRig(room);
  rig.write(rig.worker(), 50);
  rig.restart();
  dropFirstLane(rig);
  const traces = (): readonly string[] =>
    rig.files.paths().filter((path) => path.includes("/0000000000000001-"));
  expect(traces()).toHaveLength(1);
  rig.drain();
  rig.judge();
  rig.spool.persist();
  expect(traces()).toEqual([]);
});
