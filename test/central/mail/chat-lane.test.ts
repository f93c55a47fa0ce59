// Chat messages side by side: a hook that does not answer holds up its own messages and nobody else's.

import pino from "pino";
import { expect, test } from "vitest";
import { startSender } from "../../../src/central/mail/sender.ts";
import { openOutbox as open, type OutboxRig as Rig } from "../../support/outbox-rig.ts";
import { until } from "../../support/until.ts";
import type { Delivery } from "../../../src/central/mail/delivery.ts";

const sent = { kind: "sent" } as const;

/** Hooks whose URL says `dead` answer when the test says so. */
function chat(rig: Rig) {
  const got: string[] = [];
  const held: ((delivery: Delivery) => void)[] = [];
  const sender = startSender({
    outbox: rig.outboxAs("sender"),
    mail: undefined,
    chat: async ({ hookUrl, text }) => {
      got.push(text);
      if (!hookUrl.includes("dead")) return sent;
      const { promise, resolve } = Promise.withResolvers<Delivery>();
      held.push(resolve);
      return promise;
    },
    telemetry: rig.telemetry,
    log: pino({ level: "silent" }),
    now: rig.now,
    random: () => 0.5,
    timings: { idleMs: 5, telemetryMs: 5, graceMs: 50 },
  });
  const answer = (delivery: Delivery): void => {
    for (const settle of held.splice(0)) settle(delivery);
  };
  return {
    got,
    held,
    answer,
    async [Symbol.asyncDispose]() {
      answer(sent);
      await sender[Symbol.asyncDispose]();
    },
  };
}

async function isSent(rig: Rig, recipient: string): Promise<boolean> {
  return (await rig.rows()).some((row) => row.recipient === recipient && row.state === "sent");
}

test("a customer's hooks that do not answer hold up neither another customer's nor its own that does", async () => {
  await using rig = await open();
  await rig.post("chat:1", "https://dead.example/1");
  await rig.post("chat:2", "https://well.example/2");
  for (let i = 3; i < 60; i++) await rig.post(`chat:${i}`, `https://dead.example/${i}`);
  await rig.post("chat:99", "https://well.example/99", 2);
  await using lane = chat(rig);
  await until("its own", async () => isSent(rig, "chat:2"));
  await until("the other's", async () => isSent(rig, "chat:99"));
  // Two of a customer are on their way, and no more.
  await until("two that hang", () => lane.held.length === 2);
  expect(lane.got.toSorted()).toEqual(["chat:1", "chat:2", "chat:3", "chat:99"]);
  lane.answer({ kind: "later", reason: "the hook does not answer in time" });
  await until("the next two", () => lane.held.length === 2);
  expect(lane.got.slice(4).toSorted()).toEqual(["chat:4", "chat:5"]);
});

test("one at a time to a hook, in order, also where two channels are one hook", async () => {
  await using rig = await open();
  for (let i = 0; i < 6; i++) await rig.post(`chat:${i % 2}`, "https://dead.example/1");
  await rig.post("chat:7", "https://well.example/7");
  await using lane = chat(rig);
  await until("what is beside it", async () => isSent(rig, "chat:7"));
  expect(lane.got).toEqual(["chat:0", "chat:7"]);
  for (let i = 1; i < 6; i++) {
    lane.answer(sent);
    await until("the next", () => lane.held.length === 1);
    expect(lane.got.length).toBe(i + 2);
  }
  lane.answer(sent);
  await until("all", async () => (await rig.rows()).every(({ state }) => state === "sent"));
  expect(lane.got.filter((text) => text !== "chat:7")).toEqual([
    "chat:0",
    "chat:1",
    "chat:0",
    "chat:1",
    "chat:0",
    "chat:1",
  ]);
});
