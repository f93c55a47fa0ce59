// Segments are read a piece at a time: where a piece ends within a frame, the frame is read again with the next one.

import { expect, test } from "vitest";
import { SpoolRig } from "../../../support/spool-rig.ts";

test("of a segment that is larger than a piece nothing is lost where a piece ends", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  for (let i = 0; i < 14; i++) rig.write(worker, 250);
  const [path = ""] = rig.files.paths().filter((each) => each.endsWith(".seg"));
  expect(rig.files.content(path).byteLength).toBeGreaterThan(2 ** 20);
  rig.restart();
  rig.drain();
  rig.judge();
  expect(rig.central.gaps()).toEqual([]);
  expect(rig.central.records()).toHaveLength(3_500);
});
