// The promise itself, by chance: whatever happens, every record that got a number is at central once and unchanged, or inside a gap that central was told;
// and the balance holds at every step. Time, disk, crashes, central and damage are all drawn.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { totalDropped } from "../../../../src/agent/requests/spool/gaps.ts";
import { systemError, type FileOperation } from "../../../support/memory-files.ts";
import { SpoolRig, type RigPolicy } from "../../../support/spool-rig.ts";

type Step = (rig: SpoolRig) => void;
type Drawn = fc.Arbitrary<{ name: string; step: Step }>;

const named = (name: string, drawn: fc.Arbitrary<Step>): Drawn =>
  drawn.map((step) => ({ name, step }));

const pick = <T>(list: readonly T[], no: number): T | undefined => list[no % list.length];

const write = named(
  "write",
  fc.tuple(fc.nat(9), fc.integer({ min: 1, max: 60 })).map(([no, count]) => (rig) => {
    const worker = pick(rig.workers, no) ?? rig.worker();
    worker.accept(count);
    worker.handOver();
  }),
);
const accept = named(
  "accept",
  fc.tuple(fc.nat(9), fc.integer({ min: 1, max: 10 })).map(([no, count]) => (rig) => {
    (pick(rig.workers, no) ?? rig.worker()).accept(count);
  }),
);
const drop = named(
  "drop",
  fc.tuple(fc.nat(9), fc.integer({ min: 1, max: 5 })).map(([no, count]) => (rig) => {
    (pick(rig.workers, no) ?? rig.worker()).drop(count);
  }),
);
const begin = named(
  "begin",
  fc.constant((rig) => void rig.worker()),
);
const end = named(
  "end",
  fc.tuple(fc.nat(9), fc.boolean()).map(([no, orderly]) => (rig) => {
    const worker = pick(rig.workers, no);
    if (worker === undefined) return;
    if (orderly) worker.handOver();
    rig.spool.end(worker.feed);
    rig.workers = rig.workers.filter((other) => other !== worker);
  }),
);
const rest = named(
  "rest",
  fc.nat(9).map((no) => (rig) => pick(rig.workers, no)?.rest()),
);
const sync = named(
  "sync",
  fc.constant((rig) => rig.spool.sync()),
);
const persist = named(
  "persist",
  fc.constant((rig) => rig.spool.persist()),
);
const wait = named(
  "wait",
  fc.integer({ min: 1, max: 15_000 }).map((ms) => (rig) => {
    rig.nowMs += ms;
  }),
);
const ship = named(
  "ship",
  fc
    .tuple(fc.nat(20), fc.integer({ min: 1, max: 200 }), fc.boolean())
    .map(([no, recordsMax, answered]) => (rig) => {
      const lane = pick(rig.lanes(), no)?.lane;
      if (lane === undefined) return;
      try {
        rig.ship(lane, { recordsMax, answered });
      } catch (error) {
        if (!(error instanceof Error && "code" in error)) throw error;
      }
    }),
);
const kill = named(
  "kill",
  fc.constant((rig) => rig.crash("kill")),
);
const powerLoss = named(
  "power loss",
  fc.double({ min: 0, max: 1, noNaN: true }).map((kept) => (rig) => {
    rig.crash({ powerLossKeeps: kept });
  }),
);
const restart = named(
  "restart",
  fc.constant((rig) => rig.restart()),
);
/** While a disk takes nothing, nothing can be told to the next process: it ends once the disk takes the marks. */
const lateRestart = named(
  "late restart",
  fc.constant((rig) =>
    rig.restart(() => {
      if (!rig.spool.isDirty) return;
      healed(rig);
      rig.spool.persist();
    }),
  ),
);
const poison = named(
  "poison",
  fc.integer({ min: 0, max: 20 }).map((every) => (rig) => {
    rig.central.isPoison = ({ connection }) => every > 0 && connection % (7 * every) === 0;
  }),
);
const damage = named(
  "damage and restart",
  fc
    .tuple(fc.nat(20), fc.nat(), fc.integer({ min: 1, max: 255 }))
    .map(([no, where, flip]) => (rig) => {
      rig.restart();
      const path = pick(
        rig.files.paths().filter((each) => each.endsWith(".seg")),
        no,
      );
      if (path === undefined) return;
      const bytes = rig.files.content(path);
      const at = where % bytes.byteLength;
      bytes[at] = (bytes[at] ?? 0) ^ flip;
      rig.crash("kill");
    }),
);
const failing = named(
  "failing disk",
  fc
    .tuple(
      fc.subarray<FileOperation>(
        ["write", "datasync", "create", "unlink", "rename", "truncate", "link"],
        { minLength: 1 },
      ),
      fc.constantFrom("EIO", "ENOSPC", "EROFS"),
      fc.integer({ min: 1, max: 30 }),
    )
    .map(([operations, code, times]) => (rig) => {
      let left = times;
      rig.files.fault = (operation) =>
        operations.includes(operation) && left-- > 0 ? systemError(code) : undefined;
    }),
);
const fullDisk = named(
  "full disk",
  fc.nat(20_000).map((bytes) => (rig) => {
    rig.files.bytesMax = rig.files.usedBytes + bytes;
  }),
);
/** A while passes; where the disk has plenty, room is kept. */
const ticks = named(
  "ticks",
  fc.integer({ min: 1, max: 8 }).map((count) => (rig) => {
    for (let tick = 0; tick < count; tick++) rig.spool.tick();
  }),
);
const heal = named(
  "heal",
  fc.constant((rig) => healed(rig)),
);

function healed(rig: SpoolRig): void {
  rig.files.fault = () => undefined;
  rig.files.bytesMax = Number.MAX_SAFE_INTEGER;
  rig.nowMs += 2_000;
}

/** Runs the steps, then lets everything arrive. */
function run(
  steps: readonly { step: Step }[],
  bytesMax: number,
  policy: Partial<RigPolicy> = {},
): SpoolRig {
  const rig = new SpoolRig(bytesMax, policy);
  for (const { step } of steps) {
    step(rig);
    rig.balanced();
  }
  healed(rig);
  for (const worker of rig.workers) {
    worker.handOver();
    rig.spool.end(worker.feed);
  }
  rig.drain();
  rig.judge();
  rig.balanced();
  return rig;
}

const common = [
  write,
  write,
  write,
  accept,
  drop,
  begin,
  end,
  rest,
  sync,
  sync,
  persist,
  wait,
  ship,
  ship,
];
/** As after some seconds on a disk that has plenty. */
const roomKept = Array.from({ length: 16 }, () => ({
  step: (rig: SpoolRig) => rig.spool.tick(),
}));

const stepsOf = (...drawn: readonly Drawn[]): fc.Arbitrary<{ name: string; step: Step }[]> =>
  fc.array(fc.oneof(...drawn), { minLength: 1, maxLength: 60 });

test("crashes, power losses, lost answers, poison: nothing is lost silently, sums agree with central", () => {
  fc.assert(
    fc.property(stepsOf(...common, kill, powerLoss, restart, poison), (steps) => {
      const rig = run(steps, 2 ** 30);
      expect(rig.lanes()).toEqual([]);
      expect(rig.lostAfterAll().filter((reason) => reason !== "poison")).toEqual([]);
      const { accepted, committed, dropped, unproven } = rig.spool.facts().balance;
      expect(committed).toBe(rig.central.records().length);
      expect(totalDropped(dropped) + unproven).toBe(rig.central.lost());
      expect(accepted + unproven).toBeGreaterThanOrEqual(rig.placed.size);
    }),
    { numRuns: 300 },
  );
});

test("synced once a second: only a power loss takes more, and it is told as a crash", () => {
  fc.assert(
    fc.property(stepsOf(...common, kill, powerLoss, restart, poison), (steps) => {
      const rig = run(steps, 2 ** 30, { durability: "relaxed" });
      expect(rig.lanes()).toEqual([]);
      const lost = rig.lostAfterAll().filter((reason) => !["poison", "crash"].includes(reason));
      expect(lost).toEqual([]);
      const { committed, dropped, unproven, unknown } = rig.spool.facts().balance;
      // Of what central took and the agent forgot it is told how far it goes, and not what of it were gaps: that is committed
      // after a power loss, and unknown where nothing of it is on disk (an answer was lost before a kill).
      const { central } = rig;
      expect(committed + totalDropped(dropped) + unproven + unknown).toBe(
        central.records().length + central.lost(),
      );
      expect(committed).toBeGreaterThanOrEqual(central.records().length);
    }),
    { numRuns: 300 },
  );
});

const policies = ["drop_oldest", "drop_newest", "sample", "block"] as const;

test.each(policies)("with a spool that is too small: %s", (whenFull) => {
  fc.assert(
    fc.property(stepsOf(...common, kill, powerLoss, restart), (steps) => {
      const rig = run(steps, 2 ** 17, { whenFull });
      // Half as much is kept as room beside it.
      expect(rig.files.usedBytes).toBeLessThan(1.5 * 2 ** 17 + 50_000);
      const reasons = new Set(rig.central.gaps().map(({ reason }) => reason));
      const dropping = {
        drop_oldest: ["dropped_oldest", "spool_full"],
        drop_newest: ["spool_full"],
        sample: ["sampled", "dropped_oldest", "spool_full"],
        block: [],
      }[whenFull];
      for (const reason of ["crash", "behind", ...dropping]) reasons.delete(reason);
      expect([...reasons]).toEqual([]);
    }),
    { numRuns: 150 },
  );
});

test("with a disk that fails and fills up", () => {
  const chosen = fc.record({
    whenFull: fc.constantFrom(...policies),
    durability: fc.constantFrom("group" as const, "relaxed" as const),
  });
  fc.assert(
    fc.property(
      stepsOf(...common, ticks, failing, fullDisk, heal, lateRestart),
      chosen,
      (steps, policy) => {
        run(steps, 2 ** 18, policy);
      },
    ),
    { numRuns: 500 },
  );
});

test("with a disk that fills up, in the room that is kept, over crashes and power losses", () => {
  fc.assert(
    fc.property(
      stepsOf(...common, ticks, ticks, fullDisk, fullDisk, heal, kill, powerLoss, restart),
      fc.constantFrom(...policies),
      (steps, whenFull) => {
        run([...roomKept, ...steps], 2 ** 21, { whenFull });
      },
    ),
    { numRuns: 500 },
  );
});

test("with a disk that is full, central takes the records: none is lost, and sums agree with central", () => {
  const arrived = named(
    "all arrives",
    fc.constant((rig) => {
      for (const worker of rig.workers) worker.handOver();
      rig.spool.sync();
      rig.drain();
    }),
  );
  fc.assert(
    fc.property(
      stepsOf(arrived, arrived, ticks, restart, persist, rest, kill, powerLoss),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 60, maxLength: 60 }),
      (steps, counts) => {
        const written = steps.map(({ step }, at) => ({
          step: (rig: SpoolRig) => {
            rig.write(pick(rig.workers, at) ?? rig.worker(), counts[at] ?? 1);
            step(rig);
            rig.drain();
          },
        }));
        const full = { step: (rig: SpoolRig) => void (rig.files.bytesMax = rig.files.usedBytes) };
        const rig = run([...roomKept, full, ...written], 2 ** 21);
        const { committed, dropped, unproven } = rig.spool.facts().balance;
        expect(committed).toBe(rig.central.records().length);
        expect(totalDropped(dropped) + unproven).toBe(rig.central.lost());
        expect(dropped).toEqual({});
      },
    ),
    { numRuns: 200 },
  );
});

test("with damaged bytes", () => {
  fc.assert(
    fc.property(stepsOf(...common, damage, kill), (steps) => {
      run(steps, 2 ** 30);
    }),
    { numRuns: 200 },
  );
});
