// How channels end: what is not understood, refused upgrades, duplicates, silence, revoked credentials, shutdown, peers that do not read.

import pino from "pino";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent, reportOf } from "../../support/fake-agent.ts";
import { until } from "../../support/until.ts";

const noDomains = { domains: [] };

type Options = Parameters<typeof startAgentSide>[0];

async function started(options?: Options) {
  const side = await startAgentSide(options);
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  return { side, siteId, agent, epoch: side.agentStore.epoch };
}

test("what is not understood ends the channel with the reason", async () => {
  const { side, agent, epoch } = await started();
  await using _ = side;
  const rows = [
    ["{", 1008, /^no JSON/],
    ['{"type":"dance"}', 1008, /^not understood/],
    ['{"type":"ping","n":-1}', 1008, /^not understood/],
    [
      '{"type":"receipt","receipt":{"seq":1,"phase":"applied","detail":{},"took_ms":0}}',
      1008,
      /hello/,
    ],
    [Buffer.from("x"), 1003, /JSON texts/],
    ["x".repeat(8 * 2 ** 20 + 1), 1009, /^/],
  ] as const;
  for (const [message, code, reason] of rows) {
    using channel = await agent.channel();
    channel.socket.send(message);
    expect(await channel.close()).toEqual({ code, reason: expect.stringMatching(reason) });
  }
  using channel = await agent.channel();
  channel.hello(epoch);
  channel.say({ type: "report", report: reportOf("instance-2", 0) });
  expect(await channel.close()).toMatchObject({ code: 1008 });
});

test("an upgrade without a token, and one elsewhere, are refused in HTTP", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const url = side.url.replace("http", "ws");
  const refused = async (path: string, headers: Record<string, string>) => {
    const socket = new WebSocket(url + path, { headers });
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    socket.on("unexpected-response", (_request, response) => {
      response.resume();
      resolve(response.statusCode);
    });
    socket.on("error", () => {});
    return promise;
  };
  expect(await refused("/channel", {})).toBe(401);
  const authorization = `Bearer ${agent.token.access_token}`;
  expect(await refused("/elsewhere", { authorization })).toBe(404);
});

test("an instance that connects again replaces its old channel; another instance is one of a fleet, and both get everything", async () => {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
  const { side, siteId, agent, epoch } = await started({ log });
  await using _ = side;
  using first = await agent.channel();
  first.hello(epoch);
  await first.next("welcome");
  using again = await agent.channel();
  again.hello(epoch);
  await again.next("welcome");
  expect(await first.close()).toMatchObject({ code: 4000 });
  using twin = await agent.channel();
  twin.hello(epoch, 0, chainStart, "instance-2");
  await twin.next("welcome");
  await side.append(siteId, "domains.changed", noDomains);
  await again.next("entries");
  await twin.next("entries");
  // As after a restart: another boot, and the one before never comes again.
  using restarted = await agent.channel();
  restarted.hello(epoch, 0, chainStart, "instance-2", "b2");
  await restarted.next("welcome");
  expect(await twin.close()).toMatchObject({ code: 4000 });
  expect(lines).toEqual([]);
  expect(await side.registry.metrics()).toContain("accel_central_duplicate_agents 0");
});

test("two agents with one instance id replace each other: that is a duplicate, told once, and over when one is gone", async () => {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
  const { side, siteId, agent, epoch } = await started({ log });
  await using _ = side;
  const connect = async (boot: string) => {
    const channel = await agent.channel();
    channel.hello(epoch, 0, chainStart, "instance-1", boot);
    await channel.next("welcome");
    return channel;
  };
  using one = await connect("boot-1");
  using two = await connect("boot-2");
  await one.close();
  expect(lines).toEqual([]);
  using back = await connect("boot-1");
  await two.close();
  expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
    { code: "duplicate_agent", deployment_site_id: siteId, instance_id: "instance-1" },
  ]);
  expect(side.hub.isDuplicate(siteId, "instance-1")).toBe(true);
  expect(await side.registry.metrics()).toContain("accel_central_duplicate_agents 1");
  using backToo = await connect("boot-2");
  await back.close();
  expect(lines.length).toBe(1);
  backToo.socket.close();
  await until("none is left", () => !side.hub.isDuplicate(siteId, "instance-1"));
  expect(await side.registry.metrics()).toContain("accel_central_duplicate_agents 0");
});

test("a silent peer is dropped, one that pings is kept", async () => {
  const { side, agent, epoch } = await started({ hub: { sweepIntervalMs: 10 } });
  await using _ = side;
  using silent = await agent.channel();
  using pinging = await agent.channel();
  silent.hello(epoch, 0, chainStart, "instance-1");
  pinging.hello(epoch, 0, chainStart, "instance-2");
  await silent.next("welcome");
  await pinging.next("welcome");
  side.clock.ms += 29_000;
  pinging.say({ type: "ping", n: 1 });
  await pinging.next("pong");
  side.clock.ms += 2_000;
  expect(await silent.close()).toMatchObject({ code: 1006 });
  expect(pinging.closed).toBeUndefined();
});

test("a site whose credentials are revoked gets the rest of its journal, then the end", async () => {
  const { side, siteId, agent, epoch } = await started();
  await using _ = side;
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("welcome");
  await side.append(siteId, "domains.changed", noDomains);
  side.hub.closeSite(siteId);
  expect(await channel.close()).toMatchObject({ code: 4001 });
  expect(channel.entries.map(({ seq }) => seq)).toEqual([1]);
  expect(side.hub.isLive(siteId)).toBe(false);
});

test("at shutdown every channel is told when to come back", async () => {
  const { side, agent, epoch } = await started();
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("welcome");
  const began = performance.now();
  await side[Symbol.asyncDispose]();
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(await channel.close()).toMatchObject({ code: 1001 });
  expect(channel.all("drain")).toEqual([{ type: "drain", reconnect_after_ms: 1000 }]);
});

test("a peer that pings and does not read is cut, and its journal waits in the store", async () => {
  const { side, siteId, agent, epoch } = await started({ hub: { sweepIntervalMs: 10 } });
  await using _ = side;
  const patterns = Array.from({ length: 64 }, (_, no) => `${no}`.padEnd(4_096, "x"));
  for (let no = 0; no < 120; no++)
    await side.append(siteId, "cache.clear", {
      clear_id: `c${no}`,
      domain: "www.example.test",
      host: null,
      patterns,
    });
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("welcome");
  channel.socket.pause();
  await until("it is cut", async () => {
    side.clock.ms += 10_000;
    channel.say({ type: "ping", n: 1 });
    return (await side.registry.metrics()).includes("accel_central_channels 0");
  });
  // Eight pages of 4 MiB: the system's buffers took some; the others were never read from the store.
  const sent = /journal_entries_sent_total (\d+)/.exec(await side.registry.metrics())?.[1];
  expect(Number(sent)).toBeLessThan(100);
});
