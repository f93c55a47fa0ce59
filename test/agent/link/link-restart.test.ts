// Stopped in the middle and started over the same agent.db: every effect once, every receipt told, nothing receipted that was not done.

import { expect, test } from "vitest";
import { FakeCentral } from "../../support/fake-central.ts";
import { activation, clear, Effects, mark, startRig, type Rig } from "../../support/link-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const connected = async (rig: Rig): Promise<unknown> =>
  until("connected", () => rig.link.status().state === "connected");

test("stopped before the effect: it is made after the restart, once", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  const held = effects.hold(1);
  {
    await using rig = startRig({ central, dir: dir.path, effects });
    await connected(rig);
    central.append("viewset.activated", activation("a.example"));
    central.append("cache.clear", clear("c1"));
    await until("the other is done", () => central.receipts.length === 1);
    expect(rig.link.status().applied_seq).toBe(0);
  }
  held.release();
  expect(effects.count("viewset.activated")).toBe(0);
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("applied", () => rig.link.status().applied_seq === 2);
  await until("receipts", () => new Set(central.receipts.map(({ seq }) => seq)).size === 2);
  expect(effects.trace.filter((line) => line === "begin 2").length).toBe(1);
  expect([...effects.made.values()]).toEqual([1, 1]);
  expect(effects.snapshots.length).toBe(1);
  expect(central.hellos.at(-1)?.applied_seq).toBe(0);
});

test("stopped between effect and receipt: asked again, the same receipt, one effect", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  {
    await using rig = startRig({
      central,
      dir: dir.path,
      effects,
      appliers: {
        "cache.clear": async (entry, stop) => {
          await effects.apply(entry, stop);
          return new Promise(() => undefined); // The effect is durable; the process ends here.
        },
      },
    });
    await connected(rig);
    central.append("cache.clear", clear("c1"));
    await until("the effect", () => effects.count("cache.clear") === 1);
  }
  expect(central.receipts).toEqual([]);
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("the receipt", () => central.receipts.length === 1);
  await until("applied", () => rig.link.status().applied_seq === 1);
  expect(effects.count("cache.clear")).toBe(1);
});

test("receipts that were not acknowledged are told after the restart, their effects not made again", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  central.faults.loseAcks = Infinity;
  {
    await using rig = startRig({ central, dir: dir.path, effects });
    await connected(rig);
    for (let n = 1; n <= 3; n++) central.append("bots.changed", mark(n));
    await until("told", () => central.receipts.length === 3);
    expect(rig.link.status().receipts_unacknowledged).toBe(3);
  }
  central.faults.loseAcks = 0;
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("acknowledged", () => rig.link.status().receipts_unacknowledged === 0);
  const told = central.receipts.map(({ seq }) => seq);
  expect(told).toEqual([1, 2, 3, 1, 2, 3]);
  expect(central.receipts.slice(3)).toEqual(central.receipts.slice(0, 3));
  expect(effects.trace.length).toBe(6);
});

test("a clear whose `gone` was not recorded is asked again at the start, even without central", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  const later = (gone: Promise<unknown>) => ({
    "cache.clear": async () => ({
      phase: "applied" as const,
      detail: { matched: 1 },
      later: gone.then(() => ({ phase: "gone" as const, detail: { removed: 1 } })),
    }),
  });
  {
    const appliers = later(new Promise(() => undefined));
    await using rig = startRig({ central, dir: dir.path, effects, appliers });
    await connected(rig);
    central.append("cache.clear", clear("c1"));
    await until("applied", () => rig.link.status().applied_seq === 1);
    await until("acknowledged", () => rig.link.status().receipts_unacknowledged === 0);
  }
  {
    const nobody = { url: "http://127.0.0.1:9" };
    const appliers = later(Promise.resolve());
    await using rig = startRig({ central: nobody, dir: dir.path, effects, appliers });
    await until("gone is recorded", () => rig.link.status().receipts_unacknowledged === 1);
    expect(rig.db.ledger.unfinished()).toEqual([]);
  }
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("told", () => rig.link.status().receipts_unacknowledged === 0);
  expect(central.receipts.map(({ seq, phase }) => `${seq} ${phase}`)).toEqual([
    "1 applied",
    "1 gone",
  ]);
});

test("stopped at any moment, twenty times: each effect once, each receipt told, the journal done", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  const kinds = [
    (n: number) => ({ kind: "cache.clear", body: clear(`c${n}`) }),
    (n: number) => ({ kind: "bots.changed", body: mark(n) }),
    // Each of a domain of its own: none takes the place of another.
    (n: number) => ({ kind: "viewset.activated", body: activation(`a${n}.example`, n) }),
    (n: number) => ({ kind: "viewset.activated", body: activation(`b${n}.example`, n) }),
  ];
  {
    await using rig = startRig({ central, dir: dir.path, effects });
    await connected(rig);
  }
  let appended = 0;
  for (let round = 0; round < 20; round++) {
    await using _rig = startRig({ central, dir: dir.path, effects });
    for (let n = 0; n < 5; n++) {
      const make = kinds[(round + n) % kinds.length];
      if (make === undefined) continue;
      const { kind, body } = make(++appended);
      central.append(kind, body);
    }
    // The moment differs: after so many effects of this round.
    const target = Math.min(appended, effects.made.size + (round % 6));
    await until("some effects", () => effects.made.size >= target);
  }
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("all done", () => rig.link.status().applied_seq === appended);
  await until("all told", () => rig.link.status().receipts_unacknowledged === 0);
  expect(effects.made.size).toBe(appended);
  expect(effects.snapshots.length).toBe(1);
  const proven = central.receipts.map(({ seq, phase }) => `${seq} ${phase}`);
  expect(new Set(proven).size).toBe(appended);
  expect(proven.every((receipt) => receipt.endsWith(" applied"))).toBe(true);
});
