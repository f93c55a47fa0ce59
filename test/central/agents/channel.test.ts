// The channel: who may stream from where, order, receipts and their acknowledgement, reports.

import { expect, test } from "vitest";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import type { Report } from "../../../src/wire/channel.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent, reportOf } from "../../support/fake-agent.ts";
import { rigEdge } from "../../support/link-rig.ts";
import { until } from "../../support/until.ts";

const noDomains = { domains: [] };

type Options = Parameters<typeof startAgentSide>[0];

async function started(options?: Options) {
  const side = await startAgentSide(options);
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  return { side, siteId, agent, epoch: side.agentStore.epoch };
}

async function receipts(side: Awaited<ReturnType<typeof started>>["side"]) {
  return side.store.selectFrom("receipts").select(["instance_id", "seq", "phase"]).execute();
}

test("hello is answered, what was missed and what comes is pushed in order", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  for (let no = 0; no < 3; no++) await side.append(siteId, "domains.changed", noDomains);
  const { entries: first } = await side.agentStore.entriesAfter(siteId, 0);
  using channel = await agent.channel();
  expect(side.hub.isLive(siteId)).toBe(false);
  channel.hello(epoch, 1, first[0]?.chain);
  expect(await channel.next("welcome")).toEqual({ type: "welcome", epoch, head_seq: 3 });
  expect(side.hub.isLive(siteId)).toBe(true);
  await channel.next("entries");
  await Promise.all(
    Array.from({ length: 30 }, async () => side.append(siteId, "domains.changed", noDomains)),
  );
  await until("all entries", () => channel.entries.length === 32);
  expect(channel.entries.map(({ seq }) => seq)).toEqual(
    Array.from({ length: 32 }, (_, i) => i + 2),
  );
  expect(channel.all("resync")).toEqual([]);
  const [row] = await side.store.selectFrom("instances").selectAll().execute();
  expect(row).toMatchObject({ instance_id: "instance-1", applied_seq: 1, agent_version: "1.0.0" });
});

test("an instance that is not heard for 20 s is not connected, although its channel is open, until it is heard", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("welcome");
  side.clock.ms += 20_000;
  expect(side.hub.isLive(siteId, "instance-1")).toBe(true);
  expect(side.hub.silentMs(siteId, "instance-1")).toBe(20_000);
  side.clock.ms += 1;
  expect(side.hub.isLive(siteId, "instance-1")).toBe(false);
  expect(side.hub.isLive(siteId)).toBe(false);
  expect(side.hub.isInTouch(siteId, "instance-1")).toBe(false);
  channel.say({ type: "ping", n: 1 });
  await channel.next("pong");
  expect(side.hub.isLive(siteId, "instance-1")).toBe(true);
  expect(side.hub.silentMs(siteId, "nobody")).toBeUndefined();
});

test("many entries go in pages", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  for (let no = 1; no <= 501; no++) await side.append(siteId, "domains.changed", noDomains);
  using channel = await agent.channel();
  channel.hello(epoch);
  await until("all entries", () => channel.entries.length === 501);
  expect(channel.all("entries").map(({ entries }) => entries.length)).toEqual([500, 1]);
});

test("another history is told to resync, and nothing of it is pushed or stored", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  await side.append(siteId, "domains.changed", noDomains);
  const { chain } = await side.agentStore.head(siteId);
  const rows = [
    [null, 0, chainStart, "no state yet"],
    ["e".repeat(32), 1, chain, "of the store"],
    [epoch, 1, "f".repeat(64), "chain digest"],
    [epoch, 2, chain, "ends at 1"],
  ] as const;
  for (const [helloEpoch, seq, digest, reason] of rows) {
    using channel = await agent.channel();
    channel.hello(helloEpoch, seq, digest);
    expect((await channel.next("resync")).reason).toContain(reason);
    // Of the other history: acknowledged, so that it is not repeated for ever, and not stored.
    channel.receipt(1, "applied");
    await channel.next("receipt_ack");
    expect(await receipts(side)).toEqual([]);
    expect(channel.entries).toEqual([]);
  }
});

test("after a resync the snapshot's receipt, or a new hello, starts the stream", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  await side.append(siteId, "domains.changed", noDomains);
  const { chain } = await side.agentStore.head(siteId);
  await side.append(siteId, "domains.changed", noDomains);
  {
    using channel = await agent.channel();
    channel.hello(null);
    await channel.next("resync");
    channel.receipt(1, "applied", { snapshot: true, cleared: [] });
    await channel.next("entries");
    expect(channel.entries.map(({ seq }) => seq)).toEqual([2]);
    // The agent did not say where it stands since, and nothing says it for it.
    const [row] = await side.store.selectFrom("instances").select("applied_seq").execute();
    expect(row).toEqual({ applied_seq: 0 });
  }
  using channel = await agent.channel();
  channel.hello(null);
  await channel.next("resync");
  channel.hello(epoch, 1, chain);
  await channel.next("entries");
  expect(channel.entries.map(({ seq }) => seq)).toEqual([2]);
});

test("receipts are stored once, acknowledged each time, and signalled", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  await side.append(siteId, "domains.changed", noDomains);
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("entries");
  const signalled = side.hub.next(new AbortController().signal);
  channel.receipt(1, "applied", { a: 1 });
  expect(await channel.next("receipt_ack")).toEqual({
    type: "receipt_ack",
    seq: 1,
    phase: "applied",
  });
  await signalled;
  channel.receipt(1, "applied", { a: 2 });
  channel.receipt(1, "gone");
  channel.receipt(7, "applied"); // Beyond the head: of no history here.
  await channel.next("receipt_ack", 4);
  expect(await receipts(side)).toEqual([
    { instance_id: "instance-1", seq: 1, phase: "applied" },
    { instance_id: "instance-1", seq: 1, phase: "gone" },
  ]);
  const [first] = await side.store.selectFrom("receipts").select("detail").execute();
  expect(first).toEqual({ detail: '{"a":1}' });
  const aborted = new AbortController();
  aborted.abort();
  await side.hub.next(aborted.signal);
});

test("receipts and reports are taken over plain requests as well", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  await side.append(siteId, "domains.changed", noDomains);
  const signalled = side.hub.next(new AbortController().signal);
  const receipt = { seq: 1, phase: "applied", detail: {}, took_ms: 3 };
  const answer = await agent.call("/receipts", {
    method: "POST",
    body: JSON.stringify({ instance_id: "instance-9", receipts: [receipt, receipt] }),
  });
  expect(await answer.json()).toEqual({
    acks: [
      { seq: 1, phase: "applied" },
      { seq: 1, phase: "applied" },
    ],
  });
  await signalled;
  expect(await receipts(side)).toEqual([{ instance_id: "instance-9", seq: 1, phase: "applied" }]);
  const report = async (spooled: number) =>
    agent.call("/reports", {
      method: "POST",
      body: JSON.stringify(reportOf("instance-9", spooled)),
    });
  const confirmed = async () =>
    (await side.store.selectFrom("instances").select("logs_confirmed_at as at").execute())[0]?.at;
  expect((await report(2)).status).toBe(204);
  expect(await confirmed()).toBeNull();
  expect((await report(0)).status).toBe(204);
  expect(await confirmed()).toBe(side.clock.now().toISOString());
  for (const path of ["/receipts", "/reports"])
    expect((await agent.call(path, { method: "POST", body: '{"more":1}' })).status).toBe(400);
});

test("what an agent without a channel is, its reports say; what one leaves out stays", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const stored = async (more: Partial<Report>) => {
    const body = JSON.stringify({ ...reportOf("instance-9", 0), ...more });
    expect((await agent.call("/reports", { method: "POST", body })).status).toBe(204);
    const rows = side.store.selectFrom("instances").select(["agent_version", "edge"]);
    const { agent_version, edge } = await rows.executeTakeFirstOrThrow();
    return [agent_version, edge === null ? null : JSON.parse(edge)];
  };
  expect(await stored({})).toEqual(["", null]);
  expect(await stored({ agent_version: "1.4.0", edge: rigEdge })).toEqual(["1.4.0", rigEdge]);
  expect(await stored({})).toEqual(["1.4.0", rigEdge]);
  expect(await stored({ agent_version: "1.5.0", edge: null })).toEqual(["1.5.0", null]);
});

test("pings are answered, reports kept, progress told while an import runs", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  await side.append(siteId, "viewset.import", { import_id: "i1", domain: "www.example.test" });
  using channel = await agent.channel();
  channel.say({ type: "ping", n: 7 });
  expect(await channel.next("pong")).toEqual({ type: "pong", n: 7 });
  channel.hello(epoch);
  channel.say({ type: "report", report: reportOf("instance-1", 0) });
  const progress = {
    phase: "reading",
    files_done: 1,
    files_total: 2,
    bytes_done: 3,
    bytes_total: 4,
  } as const;
  channel.say({ type: "progress", import_id: "i1", ...progress });
  expect(await until("progress", () => side.hub.importProgress("i1"))).toEqual(progress);
  const [row] = await side.store.selectFrom("instances").selectAll().execute();
  expect(JSON.parse(row?.last_report ?? "null")).toEqual(reportOf("instance-1", 0));
  expect(row?.logs_confirmed_at).toBe(side.clock.now().toISOString());
  channel.receipt(1, "failed", { import_id: "i1", reason: "no views_dir" });
  await channel.next("receipt_ack");
  expect(side.hub.importProgress("i1")).toBeUndefined();
});
