// Limits of the outbox: what is too much waits for its turn, nobody takes another's.

import fc from "fast-check";
import { expect, test } from "vitest";
import { openOutbox as open, type OutboxRig as Rig } from "../../support/outbox-rig.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Hours and minutes at which the messages to the address are due, as they were written. */
async function turns(rig: Rig, to: string): Promise<readonly string[]> {
  const rows = (await rig.rows()).filter(({ recipient }) => recipient === to);
  return rows.map(({ due_at: due }) => due.slice(11, 16));
}

test("to one address an hour: what is more waits for its turn and is sent then; only what would come too late is not written", async () => {
  await using rig = await open();
  rig.limits.now = { perRecipient: 2, perCustomer: undefined };
  const put = async () => rig.put("a@x.org", { lifetimeMs: 2 * hourMs });
  expect([await put(), await put(), await put()]).toEqual(["queued", "queued", "deferred"]);
  rig.clock.now = new Date("2031-05-06T07:30:00.000Z");
  expect([await put(), await put(), await put()]).toEqual(["deferred", "deferred", "deferred"]);
  expect(await put()).toBe("limited");
  expect(await turns(rig, "a@x.org")).toEqual([
    "07:00",
    "07:00",
    "08:00",
    "08:00",
    "09:00",
    "09:00",
  ]);

  const outbox = rig.outboxAs("sender");
  const gone: string[] = [];
  for (let minutes = 0; minutes <= 150; minutes += 30) {
    rig.clock.now = new Date(Date.parse("2031-05-06T07:00:00.000Z") + minutes * 60_000);
    for (;;) {
      const taken = await outbox.take("mail", 1_000);
      if (taken === undefined) break;
      gone.push(rig.clock.now.toISOString().slice(11, 16));
      await outbox.sent(taken);
    }
  }
  expect(gone).toEqual(["07:00", "07:00", "08:00", "08:00", "09:00", "09:00"]);
});

test("each customer has turns of its own, to an address that both write to and in a day", async () => {
  await using rig = await open();
  rig.limits.now = { perRecipient: 1, perCustomer: 3 };
  const long = { lifetimeMs: 5 * dayMs };
  for (let i = 0; i < 3; i++) await rig.put("ops@x.org", long);
  expect(await rig.put("ops@x.org", { ...long, customerId: 2 })).toBe("queued");
  expect(await rig.put("other@x.org", long)).toBe("deferred");
  expect(await rig.put("other@x.org", { ...long, customerId: 2 })).toBe("queued");
  const others = (await rig.rows()).filter(({ recipient }) => recipient === "other@x.org");
  expect(others.map(({ due_at: due }) => due)).toEqual([
    "2031-05-07T07:00:00.000Z",
    "2031-05-06T07:00:00.000Z",
  ]);
});

test("the same thing is written once; a link that nobody waits for is not put off; an address has a limit for all", async () => {
  await using rig = await open();
  rig.limits.now = { perRecipient: 2, perCustomer: undefined, perMailbox: 3 };
  const once = { onceKey: "k" };
  expect([await rig.put("a@x.org", once), await rig.put("a@x.org", once)]).toEqual([
    "queued",
    "already",
  ]);
  const link = { kind: "recovery", patienceMs: 0 };
  const two = { ...link, customerId: 2 };
  const outcomes: string[] = [];
  for (const more of [link, link, link, two, two]) outcomes.push(await rig.put("a@x.org", more));
  expect(outcomes).toEqual(["queued", "queued", "limited", "queued", "limited"]);
});

test("in no hour are there more than the limit, whenever messages are written", async () => {
  await using rig = await open();
  let round = 0;
  const minutes = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(minutes, fc.integer({ min: 1, max: 4 }), async (gaps, perRecipient) => {
      rig.limits.now = { perRecipient, perCustomer: undefined };
      const to = `n${++round}@x.org`;
      for (const gap of gaps) {
        rig.clock.now = new Date(rig.clock.now.getTime() + gap * 60_000);
        expect(await rig.put(to, { lifetimeMs: 30 * dayMs })).not.toBe("limited");
      }
      const due = (await rig.rows()).flatMap((row) => (row.recipient === to ? [row] : []));
      const times = due.map((row) => Date.parse(row.due_at));
      // In the order in which they were written, none before it was.
      expect(times).toEqual(times.toSorted((one, other) => one - other));
      expect(due.every((row) => row.due_at >= row.when_created)).toBe(true);
      for (const [i, time] of times.entries())
        expect((times[i + perRecipient] ?? Infinity) - time).toBeGreaterThanOrEqual(hourMs);
    }),
    { numRuns: 20 },
  );
});
