// The link and the real agent side of central with each other: what one sends the other takes, over channel and requests, across restarts of either.

import { expect, test } from "vitest";
import type { JournalBody } from "../../../src/wire/journal.ts";
import { seedSite, startAgentSide, type AgentSide } from "../../support/agent-side.ts";
import { name16, secret16 } from "../../support/fake-central.ts";
import { clear, Effects, startRig, type Rig } from "../../support/link-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const clearOf = (id: string): JournalBody<"cache.clear"> => clear(id) as JournalBody<"cache.clear">;

async function startSide(stateDir: string): Promise<AgentSide> {
  const side = await startAgentSide({ stateDir });
  side.clock.ms = Date.now(); // The agent's clock is the real one.
  return side;
}

const central = (side: AgentSide): { url: string } => ({ url: new URL(side.url).origin });

const settled = async (rig: Rig, seq: number): Promise<unknown> =>
  until(`settled at ${seq}`, () => {
    const { applied_seq, receipts_unacknowledged } = rig.link.status();
    return applied_seq === seq && receipts_unacknowledged === 0;
  });

const stored = async (side: AgentSide): Promise<readonly string[]> => {
  const rows = await side.store
    .selectFrom("receipts")
    .select(["seq", "phase"])
    .orderBy("seq")
    .execute();
  return rows.map(({ seq, phase }) => `${seq} ${phase}`);
};

test("snapshot, pages of entries, receipts, across restarts of agent and central", async () => {
  using dir = tempDir();
  using centralDir = tempDir();
  const effects = new Effects();
  let siteId: number;
  {
    await using side = await startSide(centralDir.path);
    ({ siteId } = await seedSite(side.store, name16, secret16));
    await side.append(siteId, "domains.changed", { domains: [] });
    await using rig = startRig({ central: central(side), dir: dir.path, effects });
    await settled(rig, 1);
    expect(effects.snapshots.map(({ seq }) => seq)).toEqual([1]);
    for (let n = 2; n <= 20; n++) await side.append(siteId, "cache.clear", clearOf(`c${n}`));
    await settled(rig, 20);
    expect(rig.link.status().state).toBe("connected");
    expect(rig.headsApplied()).toBe(1);
  }
  await using side = await startSide(centralDir.path);
  for (let n = 21; n <= 40; n++) await side.append(siteId, "cache.clear", clearOf(`c${n}`));
  await using rig = startRig({ central: central(side), dir: dir.path, effects });
  await settled(rig, 40);
  expect(effects.snapshots.length).toBe(1);
  expect(effects.count("cache.clear")).toBe(39);
  expect(await stored(side)).toEqual(Array.from({ length: 40 }, (_, i) => `${i + 1} applied`));
});

test("another store under the same name: snapshot, and nothing of the former one is told", async () => {
  using dir = tempDir();
  using firstDir = tempDir();
  using secondDir = tempDir();
  const effects = new Effects();
  {
    await using side = await startSide(firstDir.path);
    const { siteId } = await seedSite(side.store, name16, secret16);
    for (let n = 1; n <= 5; n++) await side.append(siteId, "cache.clear", clearOf(`c${n}`));
    await using rig = startRig({ central: central(side), dir: dir.path, effects });
    await settled(rig, 5);
  }
  await using side = await startSide(secondDir.path);
  const { siteId } = await seedSite(side.store, name16, secret16);
  await side.append(siteId, "domains.changed", { domains: [] });
  await using rig = startRig({ central: central(side), dir: dir.path, effects });
  await settled(rig, 1);
  await side.append(siteId, "cache.clear", clearOf("d"));
  await settled(rig, 2);
  expect(effects.snapshots.length).toBe(2);
  expect(await stored(side)).toEqual(["1 applied", "2 applied"]);
});

test("a site that was deleted while the agent was away: told, and nothing else stops it", async () => {
  using dir = tempDir();
  using centralDir = tempDir();
  await using side = await startSide(centralDir.path);
  const { siteId } = await seedSite(side.store, name16, secret16);
  await side.append(siteId, "domains.changed", { domains: [] });
  {
    await using rig = startRig({ central: central(side), dir: dir.path, effects: new Effects() });
    await settled(rig, 1);
    expect(rig.sitesDeleted()).toBe(0);
  }
  await side.store
    .updateTable("deployment_sites")
    .set({ when_deleted: side.clock.now().toISOString() })
    .where("id", "=", siteId)
    .execute();
  await using rig = startRig({ central: central(side), dir: dir.path, effects: new Effects() });
  await until("told", () => rig.sitesDeleted() === 1);
  expect(rig.codes()).toEqual(["site_deleted"]);
});

test("clocks that differ by more than five minutes are told as that", async () => {
  using dir = tempDir();
  using centralDir = tempDir();
  await using side = await startSide(centralDir.path);
  await seedSite(side.store, name16, secret16);
  side.clock.ms += 600_000;
  await using rig = startRig({ central: central(side), dir: dir.path, effects: new Effects() });
  await until("told", () => rig.codes().includes("clock_skewed"));
  expect(rig.link.status().state).toBe("disconnected");
  expect(rig.sitesDeleted()).toBe(0);
});
