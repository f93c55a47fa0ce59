// Where instances stand in the journal: as each told it last, judged by the journal when it is shown, and never inferred from receipts.

import { expect, test } from "vitest";
import { sitePositions } from "../../../src/central/store/journal/instances.ts";
import { siteFacts } from "../../../src/central/status.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { centralTakes, takesHeader, type Position } from "../../../src/wire/position.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent, reportOf } from "../../support/fake-agent.ts";
import { until } from "../../support/until.ts";

const noDomains = { domains: [] };

/** A site whose journal has five entries. */
async function started() {
  const side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  for (let no = 0; no < 5; no++) await side.append(siteId, "domains.changed", noDomains);
  const { entries } = await side.agentStore.entriesAfter(siteId, 0);
  const agent = await connectAgent(side.url, name16, secret16);
  const { epoch } = side.agentStore;
  const at = (seq: number, oldest?: Position["oldest_unfinished"]): Position => ({
    epoch,
    applied_seq: seq,
    chain: entries[seq - 1]?.chain ?? chainStart,
    oldest_unfinished: oldest ?? null,
  });
  const facts = async () => {
    const [site] = await sitePositions(side.store, 10);
    if (site === undefined) throw new Error("no site");
    const context = { hub: side.hub, newest: undefined, nowMs: side.clock.ms };
    return siteFacts(site, context);
  };
  return { side, siteId, agent, epoch, at, facts };
}

test("a position comes with receipts and reports, over the channel and by requests", async () => {
  const { side, agent, epoch, at, facts } = await started();
  await using _ = side;
  expect(await facts()).toMatchObject({ applied_seq: null, last_seen: null, instances: [] });
  using channel = await agent.channel();
  channel.hello(epoch, 1, at(1).chain);
  await channel.next("welcome");
  expect(await facts()).toMatchObject({ applied_seq: 1, oldest_unfinished: null });
  // All of them proven, by an agent that tells no position: it stands where it said that it stands.
  for (let seq = 2; seq <= 5; seq++) channel.receipt(seq, "applied");
  await channel.next("receipt_ack", 4);
  expect(await facts()).toMatchObject({ journal_head: 5, applied_seq: 1 });
  const download = { seq: 2, kind: "viewset.activated", since: "2030-01-15T11:59:00.000Z" };
  channel.receipt(5, "gone", {}, at(1, download));
  await channel.next("receipt_ack", 5);
  expect(await facts()).toMatchObject({ applied_seq: 1, oldest_unfinished: download });
  // In one batch the last word counts.
  channel.receipt(2, "gone", {}, at(2));
  channel.receipt(3, "gone", {}, at(4));
  await channel.next("receipt_ack", 7);
  expect(await facts()).toMatchObject({ applied_seq: 4, oldest_unfinished: null });
  channel.say({ type: "report", report: { ...reportOf("instance-1", 0), position: at(5) } });
  await until("the report is stored", async () => (await facts()).applied_seq === 5);

  const post = async (path: string, body: object) =>
    agent.call(path, { method: "POST", body: JSON.stringify(body) });
  const batch = { instance_id: "instance-1", receipts: [], position: at(3) };
  const answered = await post("/receipts", batch);
  expect(answered.headers.get(takesHeader)).toBe(centralTakes);
  expect(await facts()).toMatchObject({ applied_seq: 3 });
  await post("/reports", { ...reportOf("instance-1", 0), position: at(4) });
  expect(await facts()).toMatchObject({
    applied_seq: 4,
    instances: [{ instance_id: "instance-1", position_told: side.clock.now().toISOString() }],
  });
});

test("hosts have the names that their agents tell: that of the settings, and their own", async () => {
  const { side, siteId, facts } = await started();
  await using _ = side;
  const edge = {
    server_name: "edge-1",
    edge_ip_address: "192.0.2.10",
    at_directory: "",
    datacenter_place: "",
    country_code: "",
    datacenter_provider_company: "",
    metrics_advertise: null,
  };
  const named = { ...reportOf("instance-1", 0), edge, host_name: "web-7" };
  await side.agentStore.saveReport(siteId, named);
  await side.agentStore.saveReport(siteId, reportOf("instance-2", 0));
  await side.agentStore.saveReport(siteId, {
    ...reportOf("instance-3", 0),
    edge: { ...edge, server_name: "" },
  });
  expect((await facts()).instances).toMatchObject([
    { instance_id: "instance-1", server_name: "edge-1", host_name: "web-7" },
    { instance_id: "instance-2", server_name: null, host_name: null },
    { instance_id: "instance-3", server_name: null, host_name: null },
  ]);
});

test.each<readonly [string, (own: Position) => Position]>([
  ["another store", (own) => ({ ...own, epoch: "e".repeat(32) })],
  ["no store", (own) => ({ ...own, epoch: null })],
  ["another history", (own) => ({ ...own, chain: "f".repeat(64) as Position["chain"] })],
  ["beyond the head", (own) => ({ ...own, applied_seq: 6 })],
])("a position of %s is no position in this journal", async (_, other) => {
  const { side, siteId, at, facts } = await started();
  await using _side = side;
  const oldest = { seq: 2, kind: "cache.clear", since: "2030-01-15T11:59:00.000Z" };
  const position = other(at(4, oldest));
  await side.agentStore.saveReport(siteId, { ...reportOf("instance-1", 0), position });
  expect(await facts()).toMatchObject({ applied_seq: null, oldest_unfinished: null });
});

test("a site stands where the instance stands that is furthest behind; one that is gone for 3 minutes no longer counts, and is shown for a day", async () => {
  const { side, siteId, at, facts } = await started();
  await using _ = side;
  const told = async (id: string, seq: number, version: string) =>
    side.agentStore.saveReport(siteId, {
      ...reportOf(id, 0),
      agent_version: version,
      position: at(seq),
    });
  await told("instance-1", 2, "0.9.0");
  await told("instance-2", 5, "0.10.0");
  const both = await facts();
  expect(both).toMatchObject({ applied_seq: 2, agent_version: "0.9.0", live: false });
  expect(
    both.instances.map((one) => [one.instance_id, one.applied_seq, one.agent_version]),
  ).toEqual([
    ["instance-1", 2, "0.9.0"],
    ["instance-2", 5, "0.10.0"],
  ]);
  side.clock.ms += 180_001;
  await told("instance-2", 5, "0.10.0");
  expect(await facts()).toMatchObject({
    applied_seq: 5,
    agent_version: "0.10.0",
    instances: [{ instance_id: "instance-2" }, { instance_id: "instance-1", applied_seq: 2 }],
  });
  side.clock.ms += 86_400_001;
  await told("instance-2", 5, "0.10.0");
  expect((await facts()).instances.map((one) => one.instance_id)).toEqual(["instance-2"]);
});
