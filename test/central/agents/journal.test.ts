// The journal over plain requests, the snapshot and single sets: what an agent gets when it asks.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import type { Sha256 } from "../../../src/core/ids.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { changedSetDigest, emptySetDigest } from "../../../src/core/addresses/set-digest.ts";
import { decodeJournalPage } from "../../../src/wire/journal.ts";
import { decodeBotSetState, decodeSnapshot } from "../../../src/wire/snapshot.ts";
import {
  name16,
  secret16,
  seedSite,
  startAgentSide,
  type AgentSide,
} from "../../support/agent-side.ts";
import { connectAgent, type FakeAgent } from "../../support/fake-agent.ts";
import { until } from "../../support/until.ts";

const noDomains = { domains: [] };

async function started() {
  const side = await startAgentSide();
  const seeded = await seedSite(side.store);
  return { side, ...seeded, agent: await connectAgent(side.url, name16, secret16) };
}

async function page(agent: FakeAgent, query: string) {
  const decoded = decodeJournalPage(await (await agent.call(`/journal?${query}`)).json());
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  return decoded.value;
}

function position(side: AgentSide, seq: number, chain: string): string {
  return `after=${seq}&epoch=${side.agentStore.epoch}&chain=${chain}`;
}

test("entries come in order behind the position, in pages", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  for (let no = 1; no <= 501; no++) await side.append(siteId, "domains.changed", noDomains);
  const first = await page(agent, position(side, 0, chainStart));
  expect(first).toMatchObject({ head_seq: 501, resync: false });
  expect(first.entries).toHaveLength(500);
  const last = first.entries.at(-1);
  if (last === undefined || !("seq" in last)) throw new Error("no entry");
  const second = await page(agent, position(side, last.seq, last.chain));
  expect(second.entries).toMatchObject([{ seq: 501, kind: "domains.changed", body: noDomains }]);
});

test("a page ends before it gets too large for a message", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  const patterns = Array.from({ length: 64 }, (_, no) => `${no}`.padEnd(4_096, "x"));
  for (let no = 0; no < 20; no++)
    await side.append(siteId, "cache.clear", {
      clear_id: `c${no}`,
      domain: "www.example.test",
      host: null,
      patterns,
    });
  const { entries } = await page(agent, position(side, 0, chainStart));
  expect(entries.length).toBe(15); // Of 264 KB each, 4 MiB hold 15.
});

test("a position of another history is told to take the snapshot", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  await side.append(siteId, "domains.changed", noDomains);
  const { seq, chain } = await side.agentStore.head(siteId);
  expect(await page(agent, position(side, seq, chain))).toMatchObject({
    resync: false,
    entries: [],
  });
  for (const query of [
    `after=${seq}&chain=${chain}`,
    `after=${seq}&epoch=${"a".repeat(32)}&chain=${chain}`,
    position(side, seq, "f".repeat(64)),
    position(side, 0, "f".repeat(64)),
    position(side, seq + 1, chain),
  ])
    expect(await page(agent, query)).toMatchObject({ resync: true, head_seq: 1, entries: [] });
  for (const query of ["after=-1", "after=x", "after=0&wait=31", "after=0&wait=x"])
    expect((await agent.call(`/journal?${query}`)).status).toBe(400);
});

test("a long poll ends when the journal grows, and when the time is over", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  const waiting = page(agent, `${position(side, 0, chainStart)}&wait=30`);
  // Whether the append comes before or after the subscription, the poll must see it.
  await side.append(siteId, "domains.changed", noDomains);
  expect((await waiting).entries).toMatchObject([{ seq: 1 }]);
  const { seq, chain } = await side.agentStore.head(siteId);
  const began = performance.now();
  expect((await page(agent, `${position(side, seq, chain)}&wait=1`)).entries).toEqual([]);
  expect(performance.now() - began).toBeGreaterThan(900);
});

test("an instance that polls is in touch, though it has no channel", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  const instance = "0123456789abcdef";
  const isInTouch = (): boolean => side.hub.isInTouch(siteId, instance);
  const ask = async (query: string, as = instance): Promise<number> =>
    (await agent.call(`/journal?${query}`, { headers: { "accel-instance": as } })).status;
  expect(await ask("after=0")).toBe(200);
  expect(isInTouch()).toBe(false);
  const waiting = ask(`${position(side, 0, chainStart)}&wait=30`);
  await until("it polls", isInTouch);
  expect(side.hub.isInTouch(siteId, "another-instance")).toBe(false);
  expect(side.hub.isLive(siteId, instance)).toBe(false);
  await side.append(siteId, "domains.changed", noDomains);
  expect(await waiting).toBe(200);
  expect(isInTouch()).toBe(true); // The next poll comes in a moment.
  expect(await ask("after=0", "short")).toBe(400);
});

test("the snapshot holds the whole state at one position, sets as blobs", async () => {
  const { side, siteId, domainId, agent } = await started();
  await using _ = side;
  const manifest = await side.blobs.put(Buffer.from("a manifest"));
  const { id: viewsetId } = await side.store
    .insertInto("viewsets")
    .values({
      domain_id: domainId,
      name: "v1",
      comment: "",
      files_blob: null,
      manifest_blob: manifest,
      when_created: "2030-01-01T00:00:00Z",
      when_obsoleted: null,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await side.store.updateTable("domains").set({ active_viewset_id: viewsetId }).execute();
  const elements = [
    { bot: "b", range: "192.0.2.1" },
    { bot: "a", range: "192.0.2.1" },
    { bot: "a", range: "10.0.0.0/8" },
  ];
  const digest = changedSetDigest(emptySetDigest, elements, []);
  await seedBadBots(side, domainId, elements, digest);
  await side.store
    .insertInto("imports")
    .values({
      id: "i1",
      domain_id: domainId,
      deployment_site_id: siteId,
      viewset_name: "v2",
      state: "started",
      error: null,
      viewset_id: null,
      files: null,
      bytes: null,
      when_started: "2030-01-01T00:00:00Z",
      when_ended: null,
    })
    .execute();
  await side.append(siteId, "domains.changed", noDomains);
  await side.append(siteId, "viewset.import", { import_id: "i1", domain: "www.example.test" });
  const head = await side.agentStore.head(siteId);

  const decoded = decodeSnapshot(await (await agent.call("/snapshot")).json());
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  const sorted = elements.toSorted((a, b) =>
    `${a.bot} ${a.range}` < `${b.bot} ${b.range}` ? -1 : 1,
  );
  const content = sorted.map((element) => `${canonicalJson(element)}\n`).join("");
  const blob = createHash("sha256").update(content).digest("hex");
  expect(decoded.value).toMatchObject({
    epoch: side.agentStore.epoch,
    ...head,
    domains: {
      domains: [{ name: "www.example.test", sub_domains: [{ name: "img.www.example.test" }] }],
    },
    policy: { domains: [{ domain: "www.example.test", unknown_bots_can_access: null }] },
    viewsets: [{ domain: "www.example.test", viewset_id: viewsetId, viewset_name: "v1", manifest }],
    bots: [
      {
        domain: "www.example.test",
        set: "bad",
        version: 4,
        count: 3,
        digest,
        blob,
        shrink_meant: false,
      },
    ],
    imports: [{ seq: 2, import_id: "i1", domain: "www.example.test" }],
  });
  expect(await (await agent.call(`/blobs/${blob}`)).text()).toBe(content);

  const one = decodeBotSetState(await (await agent.call("/bot-sets/www.example.test/bad")).json());
  expect(one).toMatchObject({ ok: true, value: { version: 4, blob } });
  const empty = decodeBotSetState(
    await (await agent.call("/bot-sets/img.www.example.test/vip")).json(),
  );
  expect(empty).toMatchObject({
    ok: true,
    value: { version: 0, count: 0, digest: emptySetDigest },
  });
  expect((await agent.call("/bot-sets/other.example.test/bad")).status).toBe(404);
  expect((await agent.call("/bot-sets/www.example.test/good")).status).toBe(404);
});

async function seedBadBots(
  side: AgentSide,
  domainId: number,
  elements: readonly { bot: string; range: string }[],
  digest: Sha256,
): Promise<void> {
  const { id: setId } = await side.store
    .insertInto("bot_sets")
    .values({
      domain_id: domainId,
      host: "www.example.test",
      kind: "bad",
      version: 4,
      count: elements.length,
      digest,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  for (const [name, ranges] of Map.groupBy(elements, ({ bot }) => bot)) {
    const { id: botId } = await side.store
      .insertInto("bots")
      .values({ bot_set_id: setId, name })
      .returning("id")
      .executeTakeFirstOrThrow();
    for (const { range } of ranges)
      await side.store
        .insertInto("bot_elements")
        .values({
          bot_id: botId,
          bot_set_id: setId,
          range,
          family: 4,
          first: Buffer.alloc(16),
          last: Buffer.alloc(16),
        })
        .execute();
  }
}
