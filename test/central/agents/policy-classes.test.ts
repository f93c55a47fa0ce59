// Policies for classes of bots, to agents that take them and to those of the release before: whom central tells again, and how often.

import { expect, test } from "vitest";
import { changePolicy } from "../../../src/central/store/bots/policies.ts";
import type { ClassAccess } from "../../../src/core/serving/verdict.ts";
import { agentTakes, takesHeader } from "../../../src/wire/position.ts";
import { decodeJournalPage } from "../../../src/wire/journal.ts";
import { decodeSnapshot, type Snapshot } from "../../../src/wire/snapshot.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent, type FakeChannel } from "../../support/fake-agent.ts";
import { until } from "../../support/until.ts";

const domain = "www.example.test";
/** What agents of the release before send. */
const olderTakes = "extension";
const [one, other] = ["instance-1", "instance-2"] as const;

type Started = Awaited<ReturnType<typeof started>>;

/** A site that has two entries: `policy.classes`, which lets feed readers in, and `policy.changed`. */
async function started(classes: ClassAccess = { feed: true }) {
  const side = await startAgentSide();
  const { siteId, customerId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  const set = async (said: ClassAccess): Promise<void> => {
    const general = { access: false, classes: said };
    const change = { allow: undefined, deny: undefined, general, perDomain: undefined };
    const { appended } = await side.customers.run(async (work) => ({
      keep: true,
      value: await changePolicy(work, customerId, change),
    }));
    side.bus.publish(appended);
  };
  await set(classes);
  return { side, siteId, agent, set };
}

async function kinds({ side, siteId }: Started): Promise<readonly string[]> {
  return (await side.agentStore.entriesAfter(siteId, 0)).entries.map(({ kind }) => kind);
}

/** Says hello from the journal's head. */
async function greet(
  { side, siteId, agent }: Started,
  takes: string | undefined,
  instance: string = one,
): Promise<FakeChannel> {
  const { seq, chain } = await side.agentStore.head(siteId);
  const channel = await agent.channel(takes);
  channel.hello(side.agentStore.epoch, seq, chain, instance);
  await channel.next("welcome");
  return channel;
}

/** What a channel does is done when it answers what it is sent next. */
async function settled(channel: FakeChannel): Promise<void> {
  const before = channel.all("receipt_ack").length;
  channel.receipt(2, "applied");
  await channel.next("receipt_ack", before + 1);
}

async function refuse(
  { side, siteId }: Started,
  seq: number,
  instance: string = one,
): Promise<void> {
  const receipt = { seq, phase: "refused", detail: { reason: "unknown" }, took_ms: 0 } as const;
  await side.agentStore.saveReceipts(siteId, instance, [receipt]);
}

async function snapshot({ agent }: Started, takes?: string): Promise<Snapshot> {
  const headers = takes === undefined ? {} : { [takesHeader]: takes };
  const decoded = decodeSnapshot(await (await agent.call("/snapshot", { headers })).json());
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  return decoded.value;
}

const first = ["policy.classes", "policy.changed"];
const again = [...first, ...first];

test("an instance that refused the entry is told again when its next release says hello, once", async () => {
  const scene = await started();
  await using _ = scene.side;
  await refuse(scene, 1);
  using older = await greet(scene, olderTakes);
  await settled(older);
  expect(await kinds(scene)).toEqual(first);
  using updated = await greet(scene, agentTakes);
  await updated.next("entries");
  expect(updated.entries).toMatchObject([
    { seq: 3, kind: "policy.classes", body: { domains: [{ domain, feed: true }] } },
    { seq: 4, kind: "policy.changed" },
  ]);
  // It has not said what became of it yet.
  using twice = await greet(scene, agentTakes);
  await settled(twice);
  twice.receipt(3, "applied");
  await twice.next("receipt_ack", 2);
  using later = await greet(scene, agentTakes);
  await settled(later);
  expect(await kinds(scene)).toEqual(again);
});

test("an instance whose receipt has not come, and one that took it, are told nothing", async () => {
  const scene = await started();
  await using _ = scene.side;
  await refuse(scene, 1, other);
  using silent = await greet(scene, agentTakes);
  await settled(silent);
  silent.receipt(1, "applied");
  await silent.next("receipt_ack", 2);
  using taker = await greet(scene, agentTakes);
  await settled(taker);
  expect(await kinds(scene)).toEqual(first);
});

test("a refusal that comes after the hello of the next release counts too", async () => {
  const scene = await started();
  await using _ = scene.side;
  using channel = await greet(scene, agentTakes);
  channel.receipt(2, "refused");
  await settled(channel);
  expect(await kinds(scene)).toEqual(first);
  channel.receipt(1, "refused");
  expect((await channel.next("entries")).entries).toMatchObject([{ seq: 3 }, { seq: 4 }]);
});

test("a host that is updated after another is told again after it", async () => {
  const scene = await started();
  await using _ = scene.side;
  for (const instance of [one, other]) await refuse(scene, 1, instance);
  using updated = await greet(scene, agentTakes);
  await updated.next("entries");
  await refuse(scene, 3, other);
  using second = await greet(scene, agentTakes, other);
  await second.next("entries");
  await settled(second);
  expect(await kinds(scene)).toEqual([...again, ...first]);
});

test("an instance that polls is told again with its poll", async () => {
  const scene = await started();
  await using _ = scene.side;
  const { side, siteId, agent } = scene;
  await refuse(scene, 1);
  const { seq, chain } = await side.agentStore.head(siteId);
  const poll = async (headers: Readonly<Record<string, string>>) => {
    const query = `after=${seq}&epoch=${side.agentStore.epoch}&chain=${chain}`;
    const answer = await agent.call(`/journal?${query}`, { headers });
    const decoded = decodeJournalPage(await answer.json());
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    return decoded.value.entries;
  };
  const asked = { "accel-instance": "0123456789abcdef" };
  await refuse(scene, 1, asked["accel-instance"]);
  expect(await poll({ ...asked, [takesHeader]: olderTakes })).toEqual([]);
  expect(await poll({ [takesHeader]: agentTakes })).toEqual([]);
  for (let no = 0; no < 2; no++)
    expect(await poll({ ...asked, [takesHeader]: agentTakes })).toMatchObject([
      { seq: 3, kind: "policy.classes" },
      { seq: 4, kind: "policy.changed" },
    ]);
});

test("a site that has no classes is told none, whatever was refused there", async () => {
  const scene = await started({});
  await using _ = scene.side;
  await refuse(scene, 1);
  using channel = await greet(scene, agentTakes);
  await settled(channel);
  await snapshot(scene);
  expect(await kinds(scene)).toEqual(["policy.changed"]);
});

test("an agent that refuses what it says that it takes is not told for ever", async () => {
  const scene = await started();
  await using _ = scene.side;
  const told = scene.side.store.updateTable("told_classes");
  await told.set({ repeats: 255 }).execute();
  await refuse(scene, 1);
  using channel = await greet(scene, agentTakes);
  await channel.next("entries");
  channel.receipt(3, "refused");
  await settled(channel);
  await snapshot(scene);
  expect(await kinds(scene)).toEqual(again);
  await scene.set({ crawler: true });
  await refuse(scene, 5);
  using next = await greet(scene, agentTakes);
  expect((await next.next("entries")).entries).toMatchObject([
    { seq: 7, kind: "policy.classes" },
    { seq: 8, kind: "policy.changed" },
  ]);
});

test("a snapshot tells of classes those that take them", async () => {
  const scene = await started();
  await using _ = scene.side;
  const { policy_classes: classes, seq } = await snapshot(scene, agentTakes);
  expect({ classes, seq }).toEqual({ classes: { domains: [{ domain, feed: true }] }, seq: 2 });
  expect(await kinds(scene)).toEqual(first);
  await scene.set({});
  expect((await snapshot(scene, agentTakes)).policy_classes).toEqual({ domains: [] });
});

test("an older agent that takes the snapshot is told in the journal behind it, so that its refusal is known", async () => {
  const scene = await started();
  await using _ = scene.side;
  for (const takes of [undefined, olderTakes]) {
    const found = await snapshot(scene, takes);
    expect(found).not.toHaveProperty("policy_classes");
    expect(found.policy.domains).toMatchObject([{ domain, unknown_bots_can_access: false }]);
    const { entries } = await scene.side.agentStore.entriesAfter(scene.siteId, found.seq);
    expect(entries).toMatchObject([
      { seq: found.seq + 1, kind: "policy.classes" },
      { seq: found.seq + 2, kind: "policy.changed" },
    ]);
  }
  await refuse(scene, 5);
  using updated = await greet(scene, agentTakes);
  await until("it is told", () => updated.entries.length === 2);
});
