// When our history is not central's: a snapshot takes its place, completely or not at all.

import { pino } from "pino";
import { expect, test } from "vitest";
import { FakeCentral } from "../../support/fake-central.ts";
import { clear, domains, Effects, startRig, type Rig } from "../../support/link-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const connected = async (rig: Rig): Promise<unknown> =>
  until("connected", () => rig.link.status().state === "connected");
const settledAt = async (rig: Rig, seq: number): Promise<void> => {
  await until(`settled at ${seq}`, () => {
    const { state, applied_seq, receipts_unacknowledged } = rig.link.status();
    return state === "connected" && applied_seq === seq && receipts_unacknowledged === 0;
  });
};

async function withTwoClears(
  work: (central: FakeCentral, rig: Rig, effects: Effects) => Promise<void>,
): Promise<void> {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects,
    applySnapshot: async () => ({ cleared: ["a.example"] }),
  });
  await connected(rig);
  for (const id of ["c1", "c2"]) central.append("cache.clear", clear(id));
  await settledAt(rig, 2);
  await work(central, rig, effects);
}

test("the first snapshot is no warning, for each agent begins so; one that takes the place of a history is", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const lines: string[] = [];
  const write = (line: string): void => {
    const { level, reason, msg } = JSON.parse(line) as {
      readonly level: number;
      readonly reason?: string;
      readonly msg: string;
    };
    lines.push(`${pino.levels.labels[level]} ${msg} ${reason ?? ""}`);
  };
  const log = pino({ level: "info" }, { write });
  const snapshots = (): readonly string[] => lines.filter((line) => line.includes("taking"));
  await using rig = startRig({ central, dir: dir.path, effects: new Effects(), log });
  await connected(rig);
  expect(snapshots()).toEqual([
    expect.stringMatching(/^info no state yet, as at a first start: .* once it is applied $/),
  ]);
  central.journal.renew();
  central.dropChannels();
  await until("another history", () => snapshots().length === 2);
  expect(snapshots()[1]).toBe(
    `warn taking a snapshot from central central's store is now ${central.journal.epoch}`,
  );
});

test("another epoch: snapshot with its receipt, then on from there", async () => {
  await withTwoClears(async (central, rig, effects) => {
    central.journal.renew();
    central.journal.append("domains.changed", domains("a.example"));
    central.dropChannels();
    await settledAt(rig, 1);
    expect(effects.snapshots.map(({ epoch }) => epoch)[1]).toBe(central.journal.epoch);
    expect(rig.link.status().epoch).toBe(central.journal.epoch);
    expect(central.receipts.at(-1)).toMatchObject({
      seq: 1,
      phase: "applied",
      detail: { snapshot: true, cleared: ["a.example"] },
    });
    central.append("cache.clear", clear("c3"));
    await settledAt(rig, 2);
    expect(effects.trace.at(-1)).toBe("end 2");
  });
});

test.each([
  ["a shorter journal of the same epoch", 2],
  ["a journal whose last entry is another", 3],
])("%s", async (_what, length) => {
  await withTwoClears(async (central, rig, effects) => {
    central.journal.cutFrom(2);
    for (let seq = 2; seq < length; seq++) central.journal.append("policy.changed", { seq });
    central.dropChannels();
    await until("a second snapshot", () => effects.snapshots.length === 2);
    await settledAt(rig, length - 1);
    expect(rig.db.ledger.position.chain).toBe(central.journal.head.chain);
  });
});

test("an entry whose digest does not continue ours, on the channel", async () => {
  await withTwoClears(async (central, rig, effects) => {
    const forged = { ...central.journal.append("cache.clear", clear("c3")), body: clear("c4") };
    central.say({ type: "entries", entries: [forged] });
    await settledAt(rig, 3);
    expect(effects.snapshots.length).toBe(2);
    expect(effects.count("cache.clear")).toBe(2);
  });
});

test("a gap on the channel is fetched, not answered with a snapshot", async () => {
  await withTwoClears(async (central, rig, effects) => {
    central.faults.withholdEntries = true;
    central.append("cache.clear", clear("c3"));
    central.faults.withholdEntries = false;
    central.append("cache.clear", clear("c4"));
    await settledAt(rig, 4);
    expect(effects.snapshots.length).toBe(1);
    expect(effects.count("cache.clear")).toBe(4);
  });
});

test("entries under way are left for the snapshot, those in line never begin", async () => {
  await withTwoClears(async (central, rig, effects) => {
    effects.hold(3);
    central.append("cache.clear", clear("c3"));
    central.append("cache.clear", clear("c4"));
    await until("under way", () => effects.trace.includes("begin 3"));
    central.say({ type: "resync", reason: "test" });
    await settledAt(rig, 4);
    expect(effects.trace).not.toContain("end 3");
    expect(effects.trace).not.toContain("begin 4");
    expect(effects.snapshots.length).toBe(2);
  });
});

test("receipts of the former history are not told to the next store", async () => {
  await withTwoClears(async (central, rig) => {
    central.faults.loseAcks = Infinity;
    central.append("cache.clear", clear("c3"));
    await until("told", () => central.receipts.length === 3);
    central.faults.loseAcks = 0;
    central.journal.renew();
    const before = central.receipts.length;
    central.dropChannels();
    await settledAt(rig, 0);
    expect(central.receipts.length).toBe(before);
  });
});

test("a snapshot that fails is tried until it is whole; meanwhile nothing else is taken", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.append("domains.changed", domains("a.example"));
  central.faults.failSnapshots = 3;
  let failing = 2;
  const effects = new Effects();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects,
    applySnapshot: async () => {
      if (failing-- > 0) throw new Error("disk full");
      return { cleared: [] };
    },
  });
  await until("told", () => rig.codes().includes("snapshot_pending"));
  await settledAt(rig, 1);
  expect(effects.snapshots.length).toBe(3);
  expect(rig.codes()).toEqual([]);
});

test("stopped while a snapshot is applied: taken again at the next start", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.append("domains.changed", domains("a.example"));
  const effects = new Effects();
  {
    const applySnapshot = async (): Promise<never> => new Promise(() => undefined);
    await using rig = startRig({ central, dir: dir.path, effects, applySnapshot });
    await until("under way", () => effects.snapshots.length === 1);
    expect(rig.link.status().epoch).toBeNull();
  }
  await using rig = startRig({ central, dir: dir.path, effects });
  await settledAt(rig, 1);
  expect(effects.snapshots.length).toBe(2);
});

test("pending imports of a snapshot are done, also when stopped in between, also at the snapshot's own seq", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.append("viewset.import", { import_id: "i1", domain: "a.example" });
  central.append("viewset.import", { import_id: "i2", domain: "b.example" });
  central.state = {
    imports: [
      { seq: 1, import_id: "i1", domain: "a.example" },
      { seq: 2, import_id: "i2", domain: "b.example" },
    ],
  };
  const effects = new Effects();
  const held = effects.hold(1);
  {
    await using rig = startRig({ central, dir: dir.path, effects });
    await until("the snapshot and the second", () => central.receipts.length === 2);
    expect(rig.link.status().applied_seq).toBe(2);
    await until("acknowledged", () => rig.link.status().receipts_unacknowledged === 0);
  }
  held.release();
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("the first", () => central.receipts.length === 3);
  expect(central.receipts.map(({ seq, detail }) => [seq, detail["snapshot"] ?? false])).toEqual([
    [2, true],
    [2, false],
    [1, false],
  ]);
  expect(effects.count("viewset.import")).toBe(2);
  expect(effects.snapshots.length).toBe(1);
  await until("nothing is left open", () => rig.db.ledger.unfinished().length === 0);
});

test("settings that name another deployment site: its journal is another", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  {
    await using rig = startRig({ central, dir: dir.path, effects });
    await connected(rig);
  }
  central.deploymentSiteId = 8;
  await using rig = startRig({ central, dir: dir.path, effects });
  await connected(rig);
  expect(effects.snapshots.length).toBe(2);
  expect(rig.db.get("deployment_site_id")).toBe(8);
});
