// Two centrals on one PostgreSQL: what one is told reaches the agents whose channels the other holds, both append to one journal without a gap, and each knows what the other holds.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HubDeps } from "../../../src/central/agents/hub.ts";
import { appendJournal } from "../../../src/central/store/journal/journal.ts";
import { bodyDigest, chainStart, nextChain } from "../../../src/core/journal/journal-chain.ts";
import type { DryRunQuestion } from "../../../src/wire/ask.ts";
import { databaseOf, onPostgres } from "../../support/any-store.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { joinCluster, wayTo } from "../../support/central-bus.ts";
import { connectAgent, type FakeChannel } from "../../support/fake-agent.ts";
import { startPostgres, type Postgres } from "../../support/postgres.ts";
import { postgresBin } from "../../support/postgres-server.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const bin = postgresBin();
const entriesEach = 25;
const noDomains = { domains: [] };
const never = new AbortController().signal;
const question: DryRunQuestion = { domain: "www.example.test", host: null, patterns: ["path:a"] };

describe.skipIf(bin === undefined)("two centrals", { timeout: 120_000 }, () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres(bin ?? "");
    onPostgres(postgres);
  }, 120_000);
  afterAll(async () => postgres[Symbol.asyncDispose](), 60_000);

  async function startTwo(hub: Partial<HubDeps> = {}) {
    await using stack = new AsyncDisposableStack();
    const dir = stack.use(tempDir()).path;
    const other = stack.use(tempDir()).path;
    const database = `${dir}/central.db`;
    const way = wayTo(postgres.place(databaseOf(database)));
    const first = stack.use(
      await startAgentSide({ stateDir: dir, hub, join: async (store) => joinCluster(store, way) }),
    );
    const second = stack.use(
      await startAgentSide({
        stateDir: other,
        database,
        join: async (store) => joinCluster(store, way, "two.example (127.0.0.1:8000)"),
      }),
    );
    const { siteId } = await seedSite(first.store);
    const { token } = await connectAgent(first.url, name16, secret16);
    const opened: FakeChannel[] = [];
    stack.defer(() => opened.forEach((channel) => channel[Symbol.dispose]()));
    const connect = async (
      side: typeof first,
      instanceId = "instance-1",
      bootId = "b1",
    ): Promise<FakeChannel> => {
      const agent = await connectAgent(side.url, name16, secret16, token);
      const channel = await agent.channel("extensions");
      opened.push(channel);
      channel.hello(first.agentStore.epoch, 0, chainStart, instanceId, bootId);
      await channel.next("welcome");
      return channel;
    };
    const owned = stack.move();
    return {
      first,
      second,
      siteId,
      connect,
      [Symbol.asyncDispose]: async () => owned.disposeAsync(),
    };
  }

  test("one wakes the channels of the other, and their entries are one chain", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    expect(second.agentStore.epoch).toBe(first.agentStore.epoch);
    // The token was given by the one, the channel is the other's.
    const channel = await two.connect(second);
    const append = async (side: typeof first): Promise<void> =>
      void (await side.append(siteId, "domains.changed", noDomains));
    for (let no = 0; no < entriesEach; no++) await Promise.all([append(first), append(second)]);
    await until("all entries", () => channel.entries.length === 2 * entriesEach);
    let chain: string = chainStart;
    for (const [at, entry] of channel.entries.entries()) {
      const { seq, kind, at: when } = entry;
      chain = nextChain(chain, { seq, kind, at: when, bodyDigest: bodyDigest(noDomains) });
      expect([seq, entry.body, entry.chain]).toEqual([at + 1, noDomains, chain]);
    }
  });

  test("each knows of the channels that the other holds, until they are closed", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    const channel = await two.connect(second);
    await until("the one knows", () => first.hub.isLive(siteId, "instance-1"));
    expect(first.hub.silentMs(siteId, "instance-1")).toBe(0);
    expect(first.hub.isLive(siteId, "instance-2")).toBe(false);
    channel.socket.close();
    await until("the one knows of its end", () => !first.hub.isLive(siteId));
  });

  test("receipts at the one end a wait at the other", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    const channel = await two.connect(second);
    const seq = await first.append(siteId, "domains.changed", noDomains);
    await until("the entry", () => channel.entries.length === 1);
    const told: unknown[] = [];
    using _ = first.others?.bus.hear((message) => {
      if (message.kind === "proved") told.push(message);
    });
    const stored = first.hub.next(never);
    channel.receipt(seq, "applied");
    await until("the receipt is told", () => told.length > 0);
    await stored;
    expect(told).toEqual([{ kind: "proved", site_id: siteId, seqs: [seq], import_ids: [] }]);
    expect(await first.store.selectFrom("receipts").select("seq").execute()).toEqual([{ seq }]);
  });

  test("a channel of the same instance at the other replaces the older one, wherever that is", async () => {
    await using two = await startTwo();
    const older = await two.connect(two.first);
    await until("it is told", () => two.second.hub.isLive(two.siteId, "instance-1"));
    const newer = await two.connect(two.second);
    expect(await older.close()).toMatchObject({ code: 4000 });
    const newest = await two.connect(two.first);
    expect(await newer.close()).toMatchObject({ code: 4000 });
    expect(newest.closed).toBeUndefined();
  });

  test("a central that stops drains its channels one after the other: those whose turn has not come are served as before", async () => {
    const turns = [0, 0.999];
    const told: number[] = [];
    await using two = await startTwo({
      random: () => turns.shift() ?? 0,
      spreadMs: (channels, others) => {
        told.push(channels, others);
        return 2_000;
      },
    });
    const { first, second, siteId } = two;
    const early = await two.connect(first, "instance-1");
    const late = await two.connect(first, "instance-2");
    await first.others?.membership.look();
    const stopped = first.hub[Symbol.asyncDispose]();
    expect(await early.next("drain")).toMatchObject({ reconnect_after_ms: 2_500 });
    expect(first.hub.hasRoom(siteId)).toBe(false);
    const seq = await second.append(siteId, "domains.changed", noDomains);
    await until("it has the entry", () => late.entries.length === 1);
    expect(late.all("drain")).toEqual([]);
    late.receipt(seq, "applied");
    await late.next("receipt_ack");
    expect(await late.next("drain")).toMatchObject({ reconnect_after_ms: 1_000 });
    await stopped;
    expect([early.closed?.code, late.closed?.code]).toEqual([1001, 1001]);
    expect(told).toEqual([2, 1]);
  });

  test("agents that a stopping central told to come back are expected at each, until they are there; others that leave are not", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    const drained = await two.connect(first, "instance-1");
    const leaving = await two.connect(first, "instance-2");
    await until("both are known", () =>
      ["instance-1", "instance-2"].every((id) => second.hub.isLive(siteId, id)),
    );
    leaving.socket.close();
    await until("it has left", () => !second.hub.isLive(siteId, "instance-2"));
    expect(second.hub.isExpected(siteId)).toBe(false);
    await first.hub[Symbol.asyncDispose]();
    expect(drained.closed?.code).toBe(1001);
    await until("its end is told", () => !second.hub.isLive(siteId, "instance-1"));
    const seen = (id?: string) => [first, second].map(({ hub }) => hub.isExpected(siteId, id));
    expect(["instance-1", undefined, "instance-2"].map(seen)).toEqual([
      [true, true],
      [true, true],
      [false, false],
    ]);
    await two.connect(second, "instance-1", "b2");
    await until("it is back", () => second.hub.isLive(siteId, "instance-1"));
    expect(second.hub.isExpected(siteId)).toBe(false);
  });

  test("agents of a central that left all at once are expected for ten seconds", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    await two.connect(first, "instance-1");
    await until("it is known", () => second.hub.isLive(siteId, "instance-1"));
    await first.others?.membership[Symbol.asyncDispose]();
    await until("it has left", () => !second.hub.isLive(siteId, "instance-1"));
    expect(second.hub.isExpected(siteId, "instance-1")).toBe(true);
    second.clock.ms += 10_001;
    expect(second.hub.isExpected(siteId, "instance-1")).toBe(false);
  });

  test("two agents with one id at two centrals are found by both", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    const isFound = (side: typeof first) => side.hub.isDuplicate(siteId, "instance-1");
    const earlier = await two.connect(first, "instance-1", "b1");
    await until("both know it", () =>
      [first, second].every(({ hub }) => hub.isLive(siteId, "instance-1")),
    );
    await two.connect(second, "instance-1", "b2");
    await until("the first knows of the other", () => earlier.closed !== undefined);
    expect([isFound(first), isFound(second)]).toEqual([false, false]);
    await two.connect(first, "instance-1", "b1");
    await until("both found it", () => isFound(first) && isFound(second));
  });

  test("agents are asked over the channels of the other, and come in one order whoever is asked", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    const channels = [
      await two.connect(second, "instance-b"),
      await two.connect(first, "instance-c"),
      await two.connect(second, "instance-a"),
    ];
    await until("all are known", () =>
      [first, second].every(({ hub }) =>
        ["instance-a", "instance-b", "instance-c"].every((id) => hub.isLive(siteId, id)),
      ),
    );
    for (const [at, channel] of channels.entries())
      channel.socket.on("message", (data) => {
        const message: unknown = JSON.parse(Buffer.isBuffer(data) ? data.toString("utf8") : "");
        const { type, id } = Object(message) as { readonly type?: string; readonly id?: string };
        if (type === "ask" && id !== undefined)
          channel.say({ type: "answer", id, matched: at, samples: [] });
      });
    const large = {
      ...question,
      patterns: Array.from({ length: 30 }, (_, no) => `path:${no}${"ü".repeat(300)}`),
    };
    for (const asked of [question, large])
      for (const side of [first, second]) {
        const answers = await side.hub.ask(siteId, asked, 20_000, never);
        expect(answers.map(({ instanceId, answer }) => [instanceId, answer?.matched])).toEqual([
          ["instance-a", 2],
          ["instance-b", 0],
          ["instance-c", 1],
        ]);
      }
  });

  test("an agent that does not answer elsewhere is told as one that did not", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    await two.connect(second);
    await until("it is known", () => first.hub.isLive(siteId));
    expect(await first.hub.ask(siteId, question, 400, never)).toEqual([
      { instanceId: "instance-1", answer: undefined },
    ]);
  });

  test("a site that is shut at the one has its channels closed at the other", async () => {
    await using two = await startTwo();
    const channel = await two.connect(two.second);
    two.first.hub.closeSite(two.siteId);
    expect(await channel.close()).toMatchObject({ code: 4001 });
  });

  test("what was said to nobody is found by a look: an entry, and that a site was shut", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    const channel = await two.connect(second);
    await first.store
      .transaction()
      .execute(async (tx) =>
        appendJournal(tx, [siteId], "domains.changed", noDomains, "2030-01-15T12:00:00.000Z"),
      );
    await until("the entry", () => channel.entries.length === 1);
    await first.store.updateTable("deployment_sites").set({ shut_count: 1 }).execute();
    expect(await channel.close()).toMatchObject({ code: 4001 });
  });

  test("an instance that polls the one is in touch for the other", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    using _ = second.hub.pollBegins(siteId, "instance-9");
    await until("it is told", () => first.hub.isInTouch(siteId, "instance-9"));
    expect(first.hub.isLive(siteId, "instance-9")).toBe(false);
  });

  test("a connection for notices that is cut costs nothing that stays: all is looked up again", async () => {
    await using two = await startTwo();
    const { first, second, siteId } = two;
    await two.connect(second, "instance-1");
    await until("it is known", () => first.hub.isLive(siteId, "instance-1"));
    for (let no = 2; no < 5; no++) {
      await postgres.server.run(
        "postgres",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'accel-central bus'",
      );
      await two.connect(second, `instance-${no}`);
      await until("it is known", () => first.hub.isLive(siteId, `instance-${no}`));
    }
    const channel = await two.connect(second, "instance-9");
    await first.append(siteId, "domains.changed", noDomains);
    await until("the entry", () => channel.entries.length === 1);
    expect(channel.entries.map(({ kind }) => kind)).toEqual(["domains.changed"]);
  });
});
