// The agent's own word of where it stands: told beside every receipt and in every report, and what central shows of it.

import { expect, test } from "vitest";
import { Health } from "../../../src/base/health.ts";
import { centralStatus } from "../../../src/central/status.ts";
import type { JournalBody, JournalEntry } from "../../../src/wire/journal.ts";
import { seedSite, startAgentSide, type AgentSide } from "../../support/agent-side.ts";
import { FakeCentral, name16, secret16 } from "../../support/fake-central.ts";
import { activation, clear, Effects, mark, startRig, type Rig } from "../../support/link-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const connected = async (rig: Rig): Promise<unknown> =>
  until("connected", () => rig.link.status().state === "connected");

/** `accel-central status` of its only site. */
async function siteOf(side: AgentSide): Promise<unknown> {
  const status = await centralStatus(
    {
      settings: { listen: { host: "127.0.0.1" }, base_url: "", state_dir: "/" },
      version: "0",
      store: side.store,
      thread: side.thread,
      health: new Health(() => new Date()),
      now: () => new Date(),
      stop: new AbortController().signal,
    } as unknown as Parameters<typeof centralStatus>[0], // Of the settings it reads these three.
    side.hub,
    0,
  );
  return (status as { deployment_sites: readonly unknown[] }).deployment_sites[0];
}

const marks = { first: 13, last: 15, successor: 16 };

/** As a central answers that has superseded the marks 13 to 15 by 16: they are one range without bodies. */
function superseding(entries: readonly JournalEntry[]): readonly JournalEntry[] {
  const { first, last, successor } = marks;
  const before = entries.filter(({ seq }) => seq < first);
  const chain = entries.find(({ seq }) => seq === last)?.chain;
  if (chain === undefined || !entries.some(({ seq }) => seq === successor))
    return entries.some(({ seq }) => seq === successor) ? entries : before;
  const range = { from_seq: first, to_seq: last, seq: last, superseded: true, chain };
  const { seq: _, ...item } = range;
  return [
    ...before,
    item as unknown as JournalEntry, // The stores of today supersede nothing; the wire does.
    ...entries.filter(({ seq }) => seq >= successor),
  ];
}

test("central shows the agent's own position: a download held, ten clears and three superseded marks behind it", async () => {
  using dir = tempDir();
  using centralDir = tempDir();
  await using side = await startAgentSide({ stateDir: centralDir.path });
  side.clock.ms = Date.now(); // The agent's clock is the real one.
  const { siteId } = await seedSite(side.store, name16, secret16);
  await side.append(siteId, "domains.changed", { domains: [] });
  const entriesAfter = side.agentStore.entriesAfter.bind(side.agentStore);
  side.agentStore.entriesAfter = async (id, seq) => {
    const page = await entriesAfter(id, seq);
    return { ...page, entries: superseding(page.entries) };
  };
  const effects = new Effects();
  const download = effects.hold(2);
  const central = { url: new URL(side.url).origin };
  const timings = { reportIntervalMs: 20 };
  await using rig = startRig({ central, dir: dir.path, effects, timings });
  await connected(rig);
  await side.append(siteId, "viewset.activated", {
    ...(activation("a.example") as JournalBody<"viewset.activated">),
  });
  for (let n = 1; n <= 10; n++)
    await side.append(siteId, "cache.clear", clear(`c${n}`) as JournalBody<"cache.clear">);
  for (let n = 1; n <= 4; n++)
    await side.append(siteId, "bots.changed", mark(n) as JournalBody<"bots.changed">);
  await until("all but the download are done", async () => {
    const rows = await side.store.selectFrom("receipts").select("seq").execute();
    return rows.some(({ seq }) => seq === 12) && rows.some(({ seq }) => seq === marks.successor);
  });
  expect(effects.count("bots.changed")).toBe(1);
  await until("the report tells what is under way", async () =>
    JSON.stringify(await siteOf(side)).includes("viewset.activated"),
  );
  const oldest_unfinished = { seq: 2, kind: "viewset.activated", since: expect.any(String) };
  const instance = { instance_id: rig.db.instanceId, live: true };
  expect(await siteOf(side)).toMatchObject({
    journal_head: 16,
    applied_seq: 1,
    oldest_unfinished,
    instances: [{ ...instance, applied_seq: 1, oldest_unfinished }],
  });
  expect(rig.link.status()).toMatchObject({ applied_seq: 1, lag: 15, oldest_unfinished });
  download.release();
  await until("the download is receipted", async () => {
    const rows = await side.store.selectFrom("receipts").select("seq").execute();
    return rows.some(({ seq }) => seq === 2);
  });
  expect(await siteOf(side)).toMatchObject({
    journal_head: 16,
    applied_seq: 16,
    oldest_unfinished: null,
    instances: [{ ...instance, applied_seq: 16, oldest_unfinished: null }],
  });
});

test("each receipt carries the position of when it is sent, over the channel and by requests; reports too", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const effects = new Effects();
  const download = effects.hold(1);
  const timings = { reportIntervalMs: 20, upgradeRetryMs: 60_000 };
  await using rig = startRig({ central, dir: dir.path, effects, timings });
  await connected(rig);
  central.append("viewset.activated", activation("a.example"));
  central.append("cache.clear", clear("c1"));
  await until("the clear's receipt", () => central.receipts.length === 1);
  const { epoch } = central.journal;
  const before = { epoch, applied_seq: 0, oldest_unfinished: { seq: 1 } };
  expect(central.positions[0]).toMatchObject(before);
  // One of before the two entries may have come last.
  const behind = await until("a report of after the download began", () =>
    central.reports.map(({ position }) => position).find((told) => told?.oldest_unfinished),
  );
  expect(behind).toMatchObject(before);
  download.release();
  await until("the download's receipt", () => central.receipts.length === 2);
  const { chain } = central.journal.head;
  const all = { epoch, applied_seq: 2, chain, oldest_unfinished: null };
  expect(central.positions[1]).toEqual(all);
  await until("a report says so", () => central.reports.at(-1)?.position?.applied_seq === 2);

  central.faults.upgradeStatus = 404;
  central.dropChannels();
  await until("polling", () => rig.link.status().state === "polling");
  central.append("cache.clear", clear("c2"));
  await until("the receipt by request", () => central.receipts.length === 3);
  expect(central.positions[2]).toMatchObject({ applied_seq: 3, oldest_unfinished: null });
  await until("a report by request", () => central.reports.at(-1)?.position?.applied_seq === 3);
});

test.each([["the channel"], ["requests"]])(
  "a central of the release before is told no position over %s",
  async (how) => {
    using dir = tempDir();
    await using central = await FakeCentral.start();
    central.faults.old = true;
    if (how === "requests") central.faults.upgradeStatus = 404;
    const effects = new Effects();
    const timings = { reportIntervalMs: 20, upgradeRetryMs: 60_000 };
    await using rig = startRig({ central, dir: dir.path, effects, timings });
    await until("in touch", () => rig.link.status().state !== "disconnected");
    central.append("cache.clear", clear("c1"));
    await until("the receipt", () => central.receipts.length === 1);
    await until("reports", () => central.reports.length > 1);
    expect(central.positions).toEqual([undefined]);
    expect(central.reports.filter(({ position }) => position !== undefined)).toEqual([]);
  },
);
