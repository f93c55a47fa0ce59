// The link over a channel: entries applied in their lanes, each receipted until acknowledged, the head told when it is applied.

import { expect, test } from "vitest";
import { FakeCentral } from "../../support/fake-central.ts";
import {
  activation,
  clear,
  domains,
  Effects,
  mark,
  rigEdge,
  startRig,
  type Rig,
} from "../../support/link-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

async function metric(rig: Rig, name: string): Promise<number | undefined> {
  const all = await rig.registry.getMetricsAsJSON();
  return all.find((one) => one.name === name)?.values[0]?.value;
}

const allAcknowledged = async (rig: Rig, seq: number, deadlineMs?: number): Promise<void> => {
  const settled = (): boolean => {
    const { applied_seq, receipts_unacknowledged } = rig.link.status();
    return applied_seq === seq && receipts_unacknowledged === 0;
  };
  await until(`everything up to ${seq} is applied and acknowledged`, settled, deadlineMs);
};

test("a new agent takes a snapshot, then follows the journal", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  central.append("domains.changed", domains("a.example"));
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("connected", () => rig.link.status().state === "connected");
  expect(effects.snapshots.map(({ seq }) => seq)).toEqual([1]);
  central.append("cache.clear", clear("c1"));
  central.append("bots.changed", mark(1));
  await allAcknowledged(rig, 3);
  expect(central.receipts.map(({ seq, phase }) => `${seq} ${phase}`).sort()).toEqual([
    "1 applied",
    "2 applied",
    "3 applied",
  ]);
  expect(central.receipts[0]?.detail).toEqual({ snapshot: true, cleared: [] });
  expect(effects.trace.filter((line) => line.startsWith("end")).length).toBe(2);
  expect(rig.link.status()).toMatchObject({ state: "connected", lag: 0, head_seq: 3 });
  expect(await metric(rig, "accel_agent_link_connected")).toBe(1);
  expect(await metric(rig, "accel_agent_journal_applied_seq")).toBe(3);
  expect(rig.db.get("deployment_site_id")).toBe(7);
  expect(rig.db.ledger.lastClearSeq).toBe(2);
  expect(rig.codes()).toEqual([]);
});

test("hello carries the position and the instance; a report comes at once", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await until("a report", () => central.reports.length > 0);
  expect(central.hellos[0]).toMatchObject({
    agent_version: "0.0.0",
    edge: rigEdge,
    boot_id: "boot",
    epoch: central.journal.epoch,
    applied_seq: 0,
    chain: central.journal.head.chain,
    instance_id: rig.db.instanceId,
  });
  expect(central.reports[0]?.instance_id).toBe(rig.db.instanceId);
  // Said once, in hello.
  expect(Object.keys(central.reports[0] ?? {})).not.toContain("agent_version");
  rig.link.progress({
    import_id: "i",
    phase: "reading",
    files_done: 1,
    files_total: 2,
    bytes_done: 3,
    bytes_total: 4,
  });
  await until("progress", () => central.progress.length === 1);
});

test("a clear and a mark do not wait behind a download; the cursor is the prefix of what is done", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("connected", () => rig.link.status().state === "connected");
  const download = effects.hold(1);
  central.append("viewset.activated", activation("a.example"));
  central.append("cache.clear", clear("c1"));
  central.append("bots.changed", mark(1));
  await until("receipts of the others", () => central.receipts.length === 2);
  expect(central.receipts.map(({ seq }) => String(seq)).sort()).toEqual(["2", "3"]);
  expect(rig.link.status()).toMatchObject({ applied_seq: 0, lag: 3 });
  download.release();
  await allAcknowledged(rig, 3);
  expect(effects.trace.at(-1)).toBe("end 1");
});

test("an activation waits neither for the one whose place it takes nor for an import", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("connected", () => rig.link.status().state === "connected");
  const upload = effects.hold(1);
  effects.hold(2);
  central.append("viewset.import", { import_id: "i", domain: "a.example" });
  central.append("viewset.activated", activation("a.example", 1));
  await until("the download has begun", () => effects.trace.includes("begin 2"));
  central.append("viewset.activated", activation("a.example", 2));
  await until("receipts of both", () => central.receipts.length === 2);
  expect(central.receipts.map(({ seq, phase }) => [seq, phase])).toEqual([
    [2, "failed"],
    [3, "applied"],
  ]);
  expect(central.receipts[0]?.detail).toMatchObject({ code: "SUPERSEDED", superseded_by: 3 });
  expect(effects.trace).toEqual(["begin 1", "begin 2", "begin 3", "end 3"]);
  upload.release();
  await allAcknowledged(rig, 3);
  expect(effects.count("viewset.activated")).toBe(1);
});

test("nothing overtakes an earlier domains.changed", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("connected", () => rig.link.status().state === "connected");
  const link = effects.hold(1);
  central.append("domains.changed", domains("a.example"));
  for (const [kind, body] of [
    ["cache.clear", clear("c1")],
    ["viewset.activated", activation("a.example")],
    ["bots.changed", mark(1)],
    ["policy.changed", { domains: [] }],
  ] as const)
    central.append(kind, body);
  await until("the head is known", () => rig.link.status().head_seq === 5);
  await until("it has begun", () => effects.trace.length > 0);
  expect(effects.trace).toEqual(["begin 1"]);
  link.release();
  await allAcknowledged(rig, 5);
});

test("an unknown kind and an invalid body are refused with the reason and block nothing", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await until("connected", () => rig.link.status().state === "connected");
  central.append("coffee.wanted", { cups: 2 });
  central.append("cache.clear", { ...clear("c1"), patterns: "path:x" });
  central.append("cache.clear", clear("c2"));
  await allAcknowledged(rig, 3);
  const bySeq = new Map(central.receipts.map((receipt) => [receipt.seq, receipt]));
  expect(bySeq.get(1)?.phase).toBe("refused");
  expect(String(bySeq.get(1)?.detail["reason"])).toContain("coffee.wanted");
  expect(bySeq.get(2)?.phase).toBe("refused");
  expect(String(bySeq.get(2)?.detail["reason"])).toContain("/patterns");
  expect(bySeq.get(3)?.phase).toBe("applied");
});

test("a failed entry is receipted with its code and blocks nothing", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects,
    appliers: {
      "viewset.activated": async (entry) => {
        if (entry.body.viewset_id === 1) throw new Error("no devlove");
        return { phase: "applied", detail: {} };
      },
    },
  });
  central.append("viewset.activated", activation("a.example", 1));
  await until("connected", () => rig.link.status().state === "connected");
  central.append("viewset.activated", activation("a.example", 1));
  central.append("viewset.activated", activation("a.example", 2));
  await allAcknowledged(rig, 3);
  expect(central.receipts.find(({ seq }) => seq === 2)).toMatchObject({
    phase: "failed",
    detail: { code: "INTERNAL", reason: "no devlove" },
  });
  expect(central.receipts.find(({ seq }) => seq === 3)?.phase).toBe("applied");
});

test("`gone` is a receipt of its own, after `applied`", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const gone = Promise.withResolvers<void>();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects: new Effects(),
    appliers: {
      "cache.clear": async () => ({
        phase: "applied",
        detail: { matched: 3 },
        later: gone.promise.then(() => ({ phase: "gone" as const, detail: { removed: 3 } })),
      }),
    },
  });
  await until("connected", () => rig.link.status().state === "connected");
  central.append("cache.clear", clear("c1"));
  await allAcknowledged(rig, 1);
  expect(central.receipts.map(({ phase }) => phase)).toEqual(["applied"]);
  gone.resolve();
  await until("gone", () => central.receipts.length === 2);
  expect(central.receipts[1]).toMatchObject({ seq: 1, phase: "gone", detail: { removed: 3 } });
  await until("nothing is left open", () => rig.db.ledger.unfinished().length === 0);
});

test("what becomes known of a clear after `gone` is told by both its receipts anew, and in another history by none", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  let tell: (blocked: number) => void = () => undefined;
  await using rig = startRig({
    central,
    dir: dir.path,
    effects: new Effects(),
    appliers: {
      "cache.clear": async () => ({
        phase: "applied",
        detail: { matched: 3 },
        later: Promise.resolve({ phase: "gone" as const, detail: { blocked: 0 } }),
        onAmended: (listener) =>
          void (tell = (blocked) =>
            listener({ detail: { matched: 3 }, later: { phase: "gone", detail: { blocked } } })),
      }),
    },
  });
  await until("connected", () => rig.link.status().state === "connected");
  central.append("cache.clear", clear("c1"));
  await until("gone", () => central.receipts.length === 2);
  const [applied, gone] = central.receipts;
  tell(2);
  await until("told anew", () => central.receipts.length === 4);
  expect(central.receipts.slice(2)).toEqual([
    { ...applied, detail: { matched: 3, correction: 1 } },
    { ...gone, detail: { blocked: 2, correction: 1 } },
  ]);
  const tellOfBefore = tell;
  central.journal.renew();
  central.append("cache.clear", clear("another"));
  central.dropChannels();
  await until("the snapshot is receipted", () => central.receipts.length === 5);
  tellOfBefore(7);
  central.append("cache.clear", clear("c2"));
  await until("gone as well", () => central.receipts.length === 7);
  expect(central.receipts.slice(4).map(({ seq, phase }) => `${seq} ${phase}`)).toEqual([
    "1 applied",
    "2 applied",
    "2 gone",
  ]);
});

test("receipts that central does not acknowledge end the channel and are told again on the next", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  const timings = { ackMs: 500 }; // An acknowledgement that comes must not be too late.
  await using rig = startRig({ central, dir: dir.path, effects, timings });
  await until("connected", () => rig.link.status().state === "connected");
  central.faults.loseAcks = 2;
  central.append("cache.clear", clear("c1"));
  await until("told three times", () => central.receipts.length === 3);
  await allAcknowledged(rig, 1);
  expect(central.receipts.map(({ seq, phase }) => `${seq} ${phase}`)).toEqual(
    Array(3).fill("1 applied"),
  );
  expect(effects.count("cache.clear")).toBe(1);
  expect(central.hellos.length).toBe(3);
});

test("a channel stays while central says that it waits for its store, however long receipts are unanswered", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  const timings = { ackMs: 1_000, pingIntervalMs: 100 };
  await using rig = startRig({ central, dir: dir.path, effects, timings });
  await until("connected", () => rig.link.status().state === "connected");
  Object.assign(central.faults, { loseAcks: 2, holding: true });
  central.append("cache.clear", clear("c1"));
  await until("told", () => central.receipts.length === 1);
  const pings = central.pings;
  await until("much more time than an answer has", () => central.pings > pings + 30);
  expect([central.hellos.length, central.receipts.length]).toEqual([1, 1]);
  central.faults.holding = false;
  await until("told again, on another channel", () => central.receipts.length === 2);
  expect(central.hellos.length).toBe(2);
});

test("the head is told as applied once for each contact, imports aside", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("applied at the first contact", () => rig.headsApplied() === 1);
  central.faults.withholdEntries = true;
  central.append("viewset.import", { import_id: "i", domain: "a.example" });
  central.append("cache.clear", clear("c1"));
  central.faults.withholdEntries = false;
  const clearing = effects.hold(2);
  const importing = effects.hold(1);
  central.dropChannels();
  await until("the clear is under way", () => effects.trace.includes("begin 2"));
  expect(rig.headsApplied()).toBe(1);
  clearing.release();
  await until("applied at the second contact", () => rig.headsApplied() === 2);
  expect(effects.trace).not.toContain("end 1");
  importing.release();
  await allAcknowledged(rig, 2);
  expect(rig.headsApplied()).toBe(2);
});

test("what one message cannot carry is fetched in pages, superseded ranges included", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using rig = startRig({ central, dir: dir.path, effects: new Effects() });
  await until("connected", () => rig.link.status().state === "connected");
  central.faults.withholdEntries = true;
  // Mostly superseded: a commit for each would be a test of the disk.
  for (let n = 1; n <= 10_000; n++) central.journal.append("cache.clear", clear(`c${n}`));
  central.journal.supersede(1);
  for (let n = 1; n <= 600; n++) central.journal.append("policy.changed", { domains: [] });
  central.faults.withholdEntries = false;
  central.append("cache.clear", clear("last"));
  await allAcknowledged(rig, 10_601, 150_000);
  expect(rig.db.ledger.lastClearSeq).toBe(10_601);
}, 180_000);

test("while many entries are under way no more are asked for; the rest is fetched when there is room", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  await using rig = startRig({ central, dir: dir.path, effects });
  await until("connected", () => rig.link.status().state === "connected");
  const gate = effects.hold(1);
  for (let n = 1; n < 1_600; n++)
    central.journal.append(n === 1 ? "domains.changed" : "policy.changed", { domains: [] });
  central.append("cache.clear", clear("last"));
  const pages = (): readonly string[] =>
    central.requests.filter((line) => line.includes("/journal?after="));
  await until("as much as there is room for", () => pages().at(-1)?.includes("after=1000&"));
  expect(effects.trace).toEqual(["begin 1"]);
  gate.release();
  await allAcknowledged(rig, 1_600, 150_000);
  expect(effects.trace.filter((line) => line.startsWith("end")).length).toBe(1_600);
}, 180_000);

test("an entry that waits for room holds no head back, over a restart either; it is applied when there is room", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  let isFull = true;
  let tries = 0;
  const appliers = {
    "viewset.activated": async () => {
      tries++;
      if (isFull) throw Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" });
      return { phase: "applied", detail: {} } as const;
    },
  };
  const activated = {
    domain: "a.example",
    viewset_id: 1,
    viewset_name: "v",
    manifest: "0".repeat(64),
  };
  {
    await using rig = startRig({ central, dir: dir.path, effects, appliers });
    await until("applied", () => rig.headsApplied() === 1);
    central.append("viewset.activated", activated);
    await until("it was tried", () => tries > 0);
  }
  await using rig = startRig({ central, dir: dir.path, effects, appliers });
  central.append("cache.clear", clear("c1"));
  await until("applied", () => rig.headsApplied() === 1);
  await until("the clear is receipted", () => central.receipts.some(({ seq }) => seq === 2));
  expect(central.receipts.some(({ seq }) => seq === 1)).toBe(false);
  isFull = false;
  await allAcknowledged(rig, 2);
});
