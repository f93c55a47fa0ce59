// A disk that turns read-only under a running agent: what its processes told central of and could not write down is said to be unknown, never zero.

import { expect, test } from "vitest";
import { systemError } from "../../support/memory-files.ts";
import { SpoolRig } from "../../support/spool-rig.ts";

const lane = "0000000000000001/1";
const writes: ReadonlySet<string> = new Set([
  "create",
  "open",
  "write",
  "truncate",
  "datasync",
  "rename",
  "link",
  "unlink",
  "syncDirectory",
]);

function turnReadOnly({ files }: SpoolRig): void {
  files.fault = (operation) => (writes.has(operation) ? systemError("EROFS") : undefined);
}

/** Ten records are at central, then the disk turns read-only and `lost` more are told as a gap. */
function lostOnReadOnlyDisk(lost: number): SpoolRig {
  const rig = new SpoolRig();
  const worker = rig.worker();
  rig.write(worker, 10);
  rig.ship(lane);
  rig.spool.persist();
  turnReadOnly(rig);
  let told = 0;
  while (told < lost) {
    rig.nowMs += 2_000;
    const more = rig.write(worker, Math.min(100, lost - told));
    told += more;
    rig.ship(lane);
  }
  expect(rig.central.lane(lane).mark).toBe(10 + lost);
  expect(rig.spool.facts().balance).toMatchObject({ dropped: { io_error: lost }, unknown: 0 });
  return rig;
}

test.each([
  ["fewer than were reserved", 100],
  ["more than were reserved", 1_309],
])("%s: after the next start as many are unknown as central has", (_, lost) => {
  const rig = lostOnReadOnlyDisk(lost);
  rig.files.fault = () => undefined;
  rig.crash("kill");
  rig.drain();
  rig.judge();
  rig.balanced();
  const { balance } = rig.spool.facts();
  expect(balance).toMatchObject({ accepted: 10, committed: 10, dropped: {}, unknown: lost });
  // What was reserved beyond what central has stays an upper bound of what a kill may have cost.
  const { gaps } = rig.central.lane(lane);
  expect(balance.unproven).toBe(
    gaps
      .filter(({ reason }) => reason === "crash")
      .reduce((sum, { from, to }) => sum + to - from + 1, 0),
  );
  // The sums of lanes that are gone are kept, over another start as well.
  rig.spool.persist();
  rig.restart();
  expect(rig.spool.facts().balance).toMatchObject({ accepted: 10, dropped: {}, unknown: lost });
});

test("a start on the read-only disk, killed too, changes nothing of that", () => {
  const rig = lostOnReadOnlyDisk(100);
  rig.crash("kill");
  rig.drainUnwritten();
  expect(rig.spool.facts().balance).toMatchObject({ dropped: {}, unknown: 100 });
  rig.balanced();
  rig.files.fault = () => undefined;
  rig.crash("kill");
  rig.drain();
  const { unproven, unknown } = rig.spool.facts().balance;
  expect(unknown + unproven).toBeGreaterThanOrEqual(100);
  rig.balanced();
});

test("a kill on a disk that works leaves nothing unknown, whether or not central's answer came", () => {
  const rig = new SpoolRig();
  rig.write(rig.worker(), 50);
  rig.ship(lane, { answered: false });
  rig.crash("kill");
  rig.ship(lane, { answered: false });
  rig.crash("kill");
  rig.drain();
  rig.judge();
  rig.balanced();
  expect(rig.spool.facts().balance).toMatchObject({ committed: 50, dropped: {}, unknown: 0 });
});

test("a lane that is behind is not sealed while the disk takes nothing: nobody would know the next one", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  rig.write(worker, 10);
  turnReadOnly(rig);
  for (let i = 0; i < 30; i++) {
    rig.nowMs += 1_500;
    rig.write(worker, 250);
  }
  rig.ship(lane, { recordsMax: 10 });
  expect(rig.lanes().map(({ lane: id }) => id)).toEqual([lane]);
});
