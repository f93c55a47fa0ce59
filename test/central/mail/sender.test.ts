// The sender over a real outbox in a real store, with deliveries that the test decides.

import pino from "pino";
import { expect, test } from "vitest";
import { startSender } from "../../../src/central/mail/sender.ts";
import { releaseLeases } from "../../../src/central/store/notices/outbox-sending.ts";
import type { TakenMessage } from "../../../src/core/outgoing.ts";
import { openOutbox as open, type OutboxRig as Rig } from "../../support/outbox-rig.ts";
import { until } from "../../support/until.ts";
import type { Delivery } from "../../../src/central/mail/delivery.ts";

const fast = {
  idleMs: 5,
  telemetryMs: 5,
  graceMs: 50,
  down: { firstMs: 1, mostMs: 5 },
  again: { firstMs: 1_000, mostMs: 8_000 },
};

function send(rig: Rig, deliver: (to: string, taken: TakenMessage["uid"]) => Promise<Delivery>) {
  return startSender({
    outbox: rig.outboxAs("sender"),
    mail: async ({ to }, { uid }) => deliver(to, uid),
    chat: async () => ({ kind: "sent" }),
    telemetry: rig.telemetry,
    log: pino({ level: "silent" }),
    now: rig.now,
    random: () => 0.5,
    timings: fast,
  });
}

const sent = { kind: "sent" } as const;

async function states(rig: Rig): Promise<readonly string[]> {
  return (await rig.rows()).map(({ recipient, state }) => `${recipient} ${state}`);
}

test("what is due is sent in order, each once; its content is let go", async () => {
  await using rig = await open();
  const got: string[] = [];
  for (const to of ["a@x.org", "b@x.org", "c@x.org"]) await rig.put(to);
  expect(JSON.stringify(await rig.rows())).not.toContain("subject");
  await using _ = send(rig, async (to) => {
    got.push(to);
    return sent;
  });
  await until("all sent", async () => (await states(rig)).every((one) => one.endsWith(" sent")));
  expect(got).toEqual(["a@x.org", "b@x.org", "c@x.org"]);
  expect((await rig.rows()).map(({ sealed, attempts }) => [sealed, attempts])).toEqual(
    Array.from({ length: 3 }, () => ["", 1]),
  );
});

test("what one sender has is nobody else's until its lease is over, and anybody's from then on", async () => {
  await using rig = await open();
  await rig.put("a@x.org");
  const beganMs = rig.clock.now.getTime();
  expect(await rig.outboxAs("one").take("mail", 60_000)).toMatchObject({ recipient: "a@x.org" });
  rig.clock.now = new Date(beganMs + 59_999);
  expect(await rig.outboxAs("two").take("mail", 60_000)).toBeUndefined();
  rig.clock.now = new Date(beganMs + 60_000);
  expect(await rig.outboxAs("two").take("mail", 60_000)).toMatchObject({
    recipient: "a@x.org",
    attempts: 2,
  });
});

test("refused is over; what is not taken now waits, with all else for the same address", async () => {
  await using rig = await open();
  for (const to of ["no@x.org", "grey@x.org", "grey@x.org", "ok@x.org"]) await rig.put(to);
  const got: string[] = [];
  await using _ = send(rig, async (to) => {
    got.push(to);
    if (to === "no@x.org") return { kind: "refused", reason: "no such user" };
    return to === "grey@x.org" && got.length < 4 ? { kind: "later", reason: "greylisted" } : sent;
  });
  await until("ok is sent", () => got.includes("ok@x.org"));
  expect(got).toEqual(["no@x.org", "grey@x.org", "ok@x.org"]);
  await until("written", async () => (await states(rig)).includes("ok@x.org sent"));
  expect(await states(rig)).toEqual([
    "no@x.org failed",
    "grey@x.org waiting",
    "grey@x.org waiting",
    "ok@x.org sent",
  ]);
  rig.clock.now = new Date("2031-05-06T07:01:00.000Z");
  await until("the rest", async () => (await states(rig)).every((one) => !one.endsWith("waiting")));
  expect(got.slice(3)).toEqual(["grey@x.org", "grey@x.org"]);
});

test("while the server cannot be had nothing is lost and nothing overtakes", async () => {
  await using rig = await open();
  for (const to of ["a@x.org", "b@x.org"]) await rig.put(to);
  const got: string[] = [];
  let isDown = true;
  await using _ = send(rig, async (to) => {
    got.push(to);
    return isDown ? { kind: "down", reason: "refused" } : sent;
  });
  await until("three tries", () => got.length >= 3);
  // It looks at its backlog once more, and knows by now that the server is down.
  rig.clock.now = new Date("2031-05-06T07:00:01.000Z");
  await until("the gauge is set", async () =>
    (await rig.registry.metrics()).includes('messages_oldest_seconds{channel="mail"} 1\n'),
  );
  rig.clock.now = new Date("2031-05-06T07:20:00.000Z");
  const warned = () => rig.health.list().find(({ code }) => code === "mail_stuck");
  await until("health says so", () => warned());
  expect(warned()?.text).toContain(
    "2 mails wait, the oldest for 20 minutes; the server cannot be reached: refused",
  );
  isDown = false;
  await until("all sent", async () => (await states(rig)).every((one) => one.endsWith(" sent")));
  expect(new Set(got.slice(0, -1))).toEqual(new Set(["a@x.org"]));
  await until("health is well", () => rig.health.list().length === 0);
});

test("a message at which the server hangs up again and again lets the others go first, and is tried later", async () => {
  await using rig = await open();
  await rig.put("odd@x.org");
  for (let i = 0; i < 5; i++) await rig.put(`n${i}@y.org`, { customerId: 2 });
  const got: string[] = [];
  let isOdd = true;
  await using _ = send(rig, async (to) => {
    got.push(to);
    return to === "odd@x.org" && isOdd ? { kind: "down", reason: "gone", hungUp: true } : sent;
  });
  await until("the others", async () =>
    (await states(rig)).slice(1).every((state) => state.endsWith(" sent")),
  );
  expect(got).toEqual([
    ...Array.from({ length: 3 }, () => "odd@x.org"),
    ...Array.from({ length: 5 }, (_one, i) => `n${i}@y.org`),
  ]);
  expect((await states(rig))[0]).toBe("odd@x.org waiting");
  isOdd = false;
  rig.clock.now = new Date("2031-05-06T07:01:00.000Z");
  await until("it too", async () => (await states(rig))[0] === "odd@x.org sent");
});

test("without a mail server mails wait, and health says so; too late they are given up", async () => {
  await using rig = await open();
  await rig.put("a@x.org");
  await using _ = startSender({
    outbox: rig.outboxAs("sender"),
    mail: undefined,
    chat: async () => sent,
    telemetry: rig.telemetry,
    log: pino({ level: "silent" }),
    now: rig.now,
    random: () => 0.5,
    timings: fast,
  });
  await until("told", () => rig.health.list().some(({ code }) => code === "mail_unset"));
  expect(await states(rig)).toEqual(["a@x.org waiting"]);
  rig.clock.now = new Date("2031-05-06T08:00:00.000Z");
  await until("given up", async () => (await states(rig))[0] === "a@x.org failed");
  await until("health is well", () => rig.health.list().length === 0);
  expect(await rig.registry.metrics()).toContain(
    'accel_central_messages_expired_total{channel="mail",kind="weekly_report_email"} 1',
  );
});

test("two senders never have one message; a lease that ran out, or was let go, is taken again", async () => {
  await using rig = await open();
  for (let i = 0; i < 20; i++) await rig.put(`a${i}@x.org`);
  const [one, two] = [rig.outboxAs("one"), rig.outboxAs("two")];
  const taken = await Promise.all(
    Array.from({ length: 24 }, async (_, i) => (i % 2 ? one : two).take("mail", 60_000)),
  );
  const ids = taken.flatMap((found) => (found === undefined ? [] : [found.id]));
  expect(ids.length).toBe(20);
  expect(new Set(ids).size).toBe(20);
  expect(await one.take("mail", 60_000)).toBeUndefined();
  rig.clock.now = new Date("2031-05-06T07:01:00.001Z");
  const again = await two.take("mail", 60_000);
  expect(again).toMatchObject({ attempts: 2, uid: taken.find((t) => t?.id === again?.id)?.uid });
  // Whoever lost the lease does not end what another one has.
  if (again === undefined) throw new Error("nothing was taken");
  await rig.outboxAs("someone else").failed(again, "x");
  expect((await rig.rows()).every(({ state }) => state === "waiting")).toBe(true);
  await releaseLeases(rig.store, []);
  expect(await one.take("mail", 60_000)).toBeDefined();
});

test("leases are released of who is gone, and of nobody who is there", async () => {
  await using rig = await open();
  for (const name of ["a", "b"]) await rig.put(`${name}@x.org`);
  const [one, two] = [rig.outboxAs("one"), rig.outboxAs("two")];
  const [first, second] = [await one.take("mail", 60_000), await two.take("mail", 60_000)];
  await releaseLeases(rig.store, ["one", "two"]);
  expect(await two.take("mail", 60_000)).toBeUndefined();
  await releaseLeases(rig.store, ["two"]);
  expect((await two.take("mail", 60_000))?.id).toBe(first?.id);
  expect(second).toBeDefined();
});

test("who does not send now takes nothing, and goes on when it is to", async () => {
  await using rig = await open();
  await rig.put("a@x.org");
  const got: string[] = [];
  let [isOurs, asked] = [false, 0];
  await using _ = startSender({
    outbox: rig.outboxAs("sender"),
    mail: async ({ to }) => {
      got.push(to);
      return sent;
    },
    chat: async () => sent,
    telemetry: rig.telemetry,
    log: pino({ level: "silent" }),
    now: rig.now,
    random: () => 0.01,
    timings: fast,
    isOurs: () => {
      asked++;
      return isOurs;
    },
  });
  await until("it looked again", () => asked > 2);
  expect(got).toEqual([]);
  isOurs = true;
  await until("it is sent", () => got.length > 0);
  expect(got).toEqual(["a@x.org"]);
});

test("what was sent and cannot be written down is not sent again while the process lives", async () => {
  await using rig = await open();
  await rig.put("a@x.org");
  const outbox = rig.outboxAs("sender");
  let broken = 3;
  const got: string[] = [];
  const write = outbox.sent.bind(outbox);
  outbox.sent = async (taken) => {
    if (broken-- > 0) throw new Error("disk full");
    return write(taken);
  };
  await using _ = startSender({
    outbox,
    mail: async ({ to }) => {
      got.push(to);
      return sent;
    },
    chat: async () => sent,
    telemetry: rig.telemetry,
    log: pino({ level: "silent" }),
    now: rig.now,
    random: () => 0.01,
    timings: fast,
  });
  await until("written", async () => (await states(rig))[0] === "a@x.org sent");
  expect(got).toEqual(["a@x.org"]);
});

test("stopping waits for the attempt under way for a while, then leaves it to the next start", async () => {
  await using rig = await open();
  await rig.put("a@x.org");
  const begun = Promise.withResolvers<void>();
  const sender = startSender({
    outbox: rig.outboxAs("sender"),
    mail: async (_mail, _facts, signal) => {
      begun.resolve();
      const { promise, resolve } = Promise.withResolvers<Delivery>();
      signal.addEventListener("abort", () => resolve({ kind: "down", reason: "cut" }));
      return promise;
    },
    chat: async () => sent,
    telemetry: rig.telemetry,
    log: pino({ level: "silent" }),
    now: rig.now,
    random: () => 0.5,
    timings: fast,
  });
  await begun.promise;
  await sender[Symbol.asyncDispose]();
  expect(await states(rig)).toEqual(["a@x.org waiting"]);
});
