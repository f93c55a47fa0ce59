// A state directory whose site got other credentials: what was spooled under the former name is set aside and counted, never sent under the new one.

import { expect, test } from "vitest";
import { systemError } from "../../../support/memory-files.ts";
import { SpoolRig } from "../../../support/spool-rig.ts";

const renamed = { name16: "00000000000000bb" };

const segmentsIn = (rig: SpoolRig, folder: string): readonly string[] =>
  rig.files.paths().filter((path) => path.startsWith(`${rig.directory}${folder}/0`));

test("is set aside, counted and told; new records are sent under the new name", () => {
  const rig = new SpoolRig();
  rig.write(rig.worker(), 40);
  rig.ship("0000000000000001/1", { recordsMax: 10 });
  rig.restart();
  rig.crash("kill", renamed);
  expect(rig.lanes()).toEqual([]);
  expect(segmentsIn(rig, "/foreign")).toHaveLength(1);
  expect(segmentsIn(rig, "")).toEqual([]);
  expect(rig.spool.facts().balance).toEqual({
    accepted: 40,
    committed: 10,
    spooled: 0,
    inMemory: 0,
    dropped: { foreign: 30 },
    unproven: 0,
    unknown: 0,
  });
  expect(rig.notices.at(-1)).toMatchObject({
    code: "spool_foreign",
    text: expect.stringContaining("/state/spool/foreign"),
  });
  rig.write(rig.worker(), 5);
  rig.drain();
  expect(rig.central.records()).toHaveLength(15);
  rig.crash("kill", renamed);
  expect(rig.spool.facts().balance.dropped.foreign).toBe(30);
});

test("the warning ends when the operator has emptied the directory", () => {
  const rig = new SpoolRig();
  rig.write(rig.worker(), 4);
  rig.crash("kill", renamed);
  for (const path of segmentsIn(rig, "/foreign")) rig.files.unlink(path);
  rig.nowMs += 60_001;
  rig.spool.tick();
  expect(rig.notices.at(-1)).toMatchObject({ code: "spool_foreign", text: undefined });
});

test("at most as much is kept as the spool may have, the newest", () => {
  const rig = new SpoolRig(2 ** 17);
  for (const name16 of ["00000000000000b1", "00000000000000b2", "00000000000000b3"]) {
    const worker = rig.worker();
    for (let i = 0; i < 12; i++) rig.write(worker, 20);
    rig.crash("kill", { name16 });
  }
  const kept = segmentsIn(rig, "/foreign");
  const bytes = kept.reduce((sum, path) => sum + rig.files.content(path).byteLength, 0);
  expect(bytes).toBeLessThanOrEqual(2 ** 17);
  expect(bytes).toBeGreaterThan(2 ** 16);
  expect(kept.some((path) => path.includes("/0000000000000003-"))).toBe(true);
  expect(kept.some((path) => path.includes("/0000000000000001-"))).toBe(false);
});

test.each(["rename", "syncDirectory", "write", "list"] as const)(
  "a disk that fails at %s: nothing is sent until all is set aside",
  (failing) => {
    const rig = new SpoolRig();
    rig.write(rig.worker(), 40);
    rig.restart();
    let failures = 2;
    rig.files.fault = (operation) =>
      operation === failing && failures-- > 0 ? systemError("EIO") : undefined;
    rig.crash("kill", renamed);
    rig.write(rig.worker(), 3);
    for (let i = 0; i < 5; i++) {
      rig.nowMs += 2_000;
      rig.spool.tick();
      rig.drain();
    }
    expect(rig.central.lanes.has("0000000000000001/1")).toBe(false);
    expect(rig.spool.facts().balance.dropped.foreign).toBe(40);
    expect(segmentsIn(rig, "/foreign")).toHaveLength(1);
    rig.balanced();
  },
);

test("a directory that cannot be listed at the start is looked at again: old records arrive", () => {
  const rig = new SpoolRig();
  rig.write(rig.worker(), 40);
  let failures = 3;
  rig.files.fault = (operation) =>
    operation === "list" && failures-- > 0 ? systemError("EIO") : undefined;
  rig.crash("kill");
  const worker = rig.worker();
  rig.write(worker, 5);
  expect(rig.lanes()).toHaveLength(1);
  for (let i = 0; i < 4; i++) rig.spool.tick();
  rig.balanced();
  rig.drain();
  rig.judge();
  expect(rig.central.records()).toHaveLength(45);
});
