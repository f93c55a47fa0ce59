// Channels while the store is away: they stay, what agents told is stored when it is back, and each gets what the journal holds then.

import { Writable } from "node:stream";
import pino from "pino";
import { expect, test } from "vitest";
import { StoreReturn } from "../../../src/central/agents/store-return.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent, reportOf } from "../../support/fake-agent.ts";
import { until } from "../../support/until.ts";

const noDomains = { domains: [] };
const awayError = () => new AccelError("STORE_UNREACHABLE", "the store db does not answer");

/** A side whose store refuses what `refused` names, with a count of refusals. */
async function started() {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const log = pino({ level: "info" }, sink);
  const side = await startAgentSide({ log, hub: { storeLookMs: 10, sweepIntervalMs: 10 } });
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  const state = { refused: new Array<string>(), refusals: 0 };
  const own = side.agentStore as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const name of ["answers", "entriesAfter", "saveReceipts", "saveReport", "saveHello"]) {
    const action = own[name];
    own[name] = async (...args) => {
      if (!state.refused.includes(name)) return action?.(...args);
      state.refusals++;
      throw awayError();
    };
  }
  return { side, siteId, agent, state, lines, epoch: side.agentStore.epoch };
}

const all = ["answers", "entriesAfter", "saveReceipts", "saveReport", "saveHello"];

test("a channel that cannot read the journal stays, and gets the entry when the store is back", async () => {
  const { side, siteId, agent, state, lines, epoch } = await started();
  await using _ = side;
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("welcome");
  state.refused = all;
  await side.append(siteId, "domains.changed", noDomains);
  await until("it tried again", () => state.refusals > 3);
  channel.say({ type: "ping", n: 1 });
  await channel.next("pong");
  expect(channel.closed).toBeUndefined();
  state.refused = [];
  await channel.next("entries");
  expect(channel.entries.map(({ seq }) => seq)).toEqual([1]);
  expect(lines.filter((line) => line.includes("channel failed"))).toEqual([]);
});

test("pongs say that the store is waited for, to agents that take this, and only while it is", async () => {
  const { side, siteId, agent, state, epoch } = await started();
  await using _ = side;
  using told = await agent.channel("extension, held");
  told.hello(epoch);
  using untold = await agent.channel("extension");
  untold.hello(epoch, 0, chainStart, "instance-2");
  for (const channel of [told, untold]) await channel.next("welcome");
  const pongs = async (n: number) => {
    for (const channel of [told, untold]) channel.say({ type: "ping", n });
    return [await told.next("pong", n), await untold.next("pong", n)];
  };
  expect(await pongs(1)).toEqual([
    { type: "pong", n: 1 },
    { type: "pong", n: 1 },
  ]);
  state.refused = all;
  await side.append(siteId, "domains.changed", noDomains);
  await until("it tried again", () => state.refusals > 3);
  expect(await pongs(2)).toEqual([
    { type: "pong", n: 2, held: true },
    { type: "pong", n: 2 },
  ]);
  state.refused = [];
  await told.next("entries");
  expect((await pongs(3))[0]).toEqual({ type: "pong", n: 3 });
});

test("where the store is read and refuses what is written, receipts and reports are stored when it takes them, in their order", async () => {
  const { side, siteId, agent, state, lines, epoch } = await started();
  await using _ = side;
  using channel = await agent.channel();
  channel.hello(epoch);
  await channel.next("welcome");
  await side.append(siteId, "domains.changed", noDomains);
  await channel.next("entries");
  state.refused = ["saveReceipts", "saveReport"];
  channel.receipt(1, "applied");
  channel.say({ type: "report", report: reportOf("instance-1", 0) });
  await until("it was tried again and again", () => state.refusals > 3);
  expect([channel.closed, channel.all("receipt_ack")]).toEqual([undefined, []]);
  state.refused = ["saveReport"];
  await channel.next("receipt_ack");
  state.refused = [];
  await until("the report is stored", async () => {
    const { last_report: report } = await side.store
      .selectFrom("instances")
      .select("last_report")
      .executeTakeFirstOrThrow();
    return report !== null;
  });
  expect(channel.all("receipt_ack").length).toBe(1);
  const receipts = await side.store.selectFrom("receipts").select(["seq", "phase"]).execute();
  expect(receipts).toEqual([{ seq: 1, phase: "applied" }]);
  expect(lines.filter((line) => line.includes("channel failed"))).toEqual([]);
});

test("a hello waits for the store, and what is no absence ends the channel as before", async () => {
  const { side, siteId, agent, state, epoch } = await started();
  await using _ = side;
  using channel = await agent.channel();
  state.refused = all;
  channel.hello(epoch);
  await until("it was tried", () => state.refusals > 3);
  expect(channel.closed).toBeUndefined();
  state.refused = [];
  await channel.next("welcome");
  Object.assign(side.agentStore, {
    entriesAfter: async () => {
      throw new TypeError("a defect");
    },
  });
  await side.append(siteId, "domains.changed", noDomains);
  expect(await channel.close()).toMatchObject({ code: 1011 });
});

test("a site that is revoked while the store is away is closed without its rest, and a stop waits for nobody", async () => {
  const { side, siteId, agent, state, epoch } = await started();
  await using _ = side;
  using revoked = await agent.channel();
  revoked.hello(epoch);
  await revoked.next("welcome");
  state.refused = all;
  side.hub.closeSite(siteId);
  expect(await revoked.close()).toMatchObject({ code: 4001 });
  using other = await agent.channel();
  other.hello(epoch);
  await until("it waits", () => state.refusals > 2);
  await side.hub[Symbol.asyncDispose]();
  expect(await other.close()).toMatchObject({ code: 1001 });
});

test("who loses its channel while the store is away is expected for ten seconds from the return on; else nobody is who leaves by itself", async () => {
  const { side, siteId, agent, state, epoch } = await started();
  await using _ = side;
  const connect = async () => {
    const channel = await agent.channel();
    channel.hello(epoch);
    await channel.next("welcome");
    return channel;
  };
  const leave = async () => {
    const channel = await connect();
    channel.socket.close();
    await until("it has left", async () =>
      (await side.registry.metrics()).includes("accel_central_channels 0"),
    );
  };
  await leave();
  expect(side.hub.isExpected(siteId, "instance-1")).toBe(false);
  // It turns out a moment later that the store is away.
  state.refused = all;
  await until("it is expected", () => side.hub.isExpected(siteId, "instance-1"));
  side.clock.ms += 9_000;
  const before = state.refusals;
  await until("the store was asked again", () => state.refusals > before + 1);
  side.clock.ms += 9_000;
  state.refused = [];
  expect(side.hub.isExpected(siteId)).toBe(true);
  await leave(); // It was there in between.
  expect(side.hub.isExpected(siteId)).toBe(false);
  side.clock.ms += 10_001;
  state.refused = all;
  await until("the store was asked", () => state.refusals > before + 4);
  expect(side.hub.isExpected(siteId)).toBe(false);
});

test("however many wait for the store, one looks for it", async () => {
  let [looks, isAway] = [0, true];
  const storeReturn = new StoreReturn({
    intervalMs: 5,
    ask: async () => {
      looks++;
      if (looks > 3) isAway = false;
      if (isAway) throw awayError();
    },
  });
  let tries = 0;
  const waiting = Array.from({ length: 100 }, async (_, no) =>
    storeReturn.patiently(
      async () => {
        tries++;
        if (isAway) throw awayError();
        return no;
      },
      () => true,
    ),
  );
  expect(storeReturn.isAwaited).toBe(false);
  expect(await Promise.all(waiting)).toEqual(Array.from({ length: 100 }, (_, no) => no));
  expect([looks, tries, storeReturn.isAwaited]).toEqual([4, 200, false]);
  isAway = true;
  looks = -Infinity;
  const stopped = storeReturn.patiently(
    async () => {
      throw awayError();
    },
    () => true,
  );
  storeReturn[Symbol.dispose]();
  await expect(stopped).rejects.toThrow("does not answer");
});
