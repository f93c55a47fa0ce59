// Reports and notices from what agents reported: to whom, when, what, and never twice.

import { expect, test } from "vitest";
import { sendDueReports, sendEvents } from "../../src/central/reporting.ts";
import { addUnreviewed } from "../../src/central/store/bots/unreviewed-counting.ts";
import { reportOf } from "../support/fake-agent.ts";
import { openNoticeRig, type NoticeRig } from "../support/notice-rig.ts";
import {
  day,
  due,
  reportScene as scene,
  running,
  subjects,
  subscribe,
} from "../support/report-scene.ts";
import { changePolicy } from "../../src/central/store/bots/policies.ts";
import type { ClassAccess } from "../../src/core/serving/verdict.ts";

const yearsEnd = "2031-12-31T00:00:00.000Z";

let batches = 0;
async function bots(rig: NoticeRig, siteId: number, domain: string, names: readonly string[]) {
  const backend = { requests: 0, errors: 0, latency_buckets: {}, reachable: true };
  const unreviewed_bots = names.map((name) => ({ name, description: "A bot.", requests: 7 }));
  await addUnreviewed(
    rig.store,
    siteId,
    {
      ...reportOf("i", 0),
      counted: { boot_id: "b", seq: ++batches },
      domains: [{ domain, backend, unreviewed_bots }],
    },
    rig.clock.now.toISOString(),
  );
}

test("the weekly report holds the week's traffic, once; the week before is compared", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, "weekly_report_email");
  const count = async (requests: number, hits: number) =>
    rig.report(siteId, {
      "www.example.test": {
        requests: requests - hits,
        errors: 2,
        traffic: { requests, hits, blocked: 5, bytes: requests * 10_000 },
      },
    });
  await count(1_000, 400);
  // The same report again, and a start of the agent anew.
  await count(1_000, 400);
  rig.later(6 * day);
  const first = await due(rig);
  expect(subjects(first)).toEqual(["ada@x.org: Weekly report of ada: 1,000 requests"]);
  rig.later(day);
  expect(await due(rig)).toEqual([]);
  await count(1_500, 900);
  await count(500, 250);
  rig.later(6 * day);
  const [second] = await due(rig);
  if (second?.channel !== "mail") throw new Error("no mail");
  expect(second.subject).toBe("Weekly report of ada: 1,000 requests");
  for (const part of ["0 % on the week before", "75 %", "9.5 MiB", "shop.example.test"])
    expect(second.text).toContain(part);
  expect(second.unsubscribeUrl).toMatch(/\/mail\/unsubscribe\?token=[\w-]{32}$/);
  expect(second.html).toContain(second.unsubscribeUrl ?? "?");
  expect(await due(rig)).toEqual([]);
});

test("a run that was missed is made up for once; one that was cut off goes on where it was", async () => {
  await using rig = await openNoticeRig();
  const { ada } = await scene(rig);
  await subscribe(rig, ada.customerId, "weekly_report_email");
  for (const name of ["bob", "cyd"]) {
    const { customerId } = await rig.customer(name);
    await subscribe(rig, customerId, "weekly_report_email");
  }
  // Three weeks without central: the last week's report, not three.
  rig.later(21 * day);
  let transactions = 0;
  const cutOff: typeof rig.deps = {
    ...rig.deps,
    customers: Object.assign(Object.create(rig.deps.customers), {
      transact: async (action: Parameters<typeof rig.deps.customers.transact>[0]) => {
        // Daily: begun, three customers, done. Weekly: begun, the first customer.
        if (++transactions > 7) throw new Error("killed");
        return rig.deps.customers.transact(action);
      },
    }),
  };
  await expect(sendDueReports(cutOff, running)).rejects.toThrow("killed");
  const before = subjects(await rig.messages());
  const after = subjects(await due(rig));
  expect(before.length).toBe(1);
  expect([...before, ...after].toSorted((a, b) => a.localeCompare(b))).toEqual([
    "ada@x.org: Weekly report of ada: 0 requests",
    "ada@x.org: Weekly report of bob: 0 requests",
    "ada@x.org: Weekly report of cyd: 0 requests",
  ]);
  expect(await due(rig)).toEqual([]);
});

test("a run that was cut off is finished before the next one, with its own days", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, "weekly_report_email");
  const count = async (requests: number) =>
    rig.report(siteId, {
      "www.example.test": { requests, traffic: { requests, hits: 0, blocked: 0, bytes: 0 } },
    });
  await count(1_000);
  rig.later(6 * day);
  let transactions = 0;
  const cutOff: typeof rig.deps = {
    ...rig.deps,
    customers: Object.assign(Object.create(rig.deps.customers), {
      transact: async (action: Parameters<typeof rig.deps.customers.transact>[0]) => {
        // Daily: begun, the customer, done. Weekly: begun.
        if (++transactions > 4) throw new Error("killed");
        return rig.deps.customers.transact(action);
      },
    }),
  };
  await expect(sendDueReports(cutOff, running)).rejects.toThrow("killed");
  expect(await rig.messages()).toEqual([]);
  rig.later(day);
  await count(1_500);
  rig.later(6 * day);
  expect(subjects(await due(rig))).toEqual([
    "ada@x.org: Weekly report of ada: 1,000 requests",
    "ada@x.org: Weekly report of ada: 500 requests",
  ]);
  expect(await due(rig)).toEqual([]);
});

test("bots: every day where they are blocked, every week where they are let in; to users, until they take themselves off", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await rig.run(async (work) =>
    changePolicy(work, ada.customerId, {
      allow: undefined,
      deny: undefined,
      general: { access: false, classes: { feed: true } },
      perDomain: [{ domain: "shop.example.test", access: true, classes: { library: false } }],
    }),
  );
  await bots(rig, siteId, "www.example.test", ["curl", "Googlebot <b>"]);
  await bots(rig, siteId, "shop.example.test", ["wget"]);
  rig.later(day);
  const daily = await due(rig);
  expect(subjects(daily)).toEqual(["user@x.org: ada: unreviewed bots were blocked, 14 requests"]);
  const [first] = daily;
  if (first?.channel !== "mail") throw new Error("no mail");
  expect(first.text).toContain("curl");
  expect(first.text).toContain("Here feed readers are let in.");
  expect(first.text).not.toContain("wget");
  expect(first.html).toContain("Googlebot &lt;b&gt;");
  expect(first.html).not.toContain("<b>");
  // Nothing came since: nothing is sent.
  rig.later(day);
  expect(await due(rig)).toEqual([]);
  rig.later(4 * day);
  const weekly = await due(rig);
  expect(subjects(weekly)).toEqual(["user@x.org: ada: unreviewed bots were let in, 7 requests"]);
  expect(weekly[0]).toMatchObject({
    text: expect.stringContaining("Here libraries and tools are blocked."),
  });
  await rig.store.updateTable("subscriptions").set({ state: "ended" }).execute();
  await bots(rig, siteId, "www.example.test", ["curl"]);
  rig.later(day);
  expect(await due(rig)).toEqual([]);
});

test("bots: a domain whose policy lets in each class is among those that let bots in", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  const all = { crawler: true, feed: true, library: true };
  const set = async (classes: ClassAccess) =>
    rig.run(async (work) =>
      changePolicy(work, ada.customerId, {
        allow: undefined,
        deny: undefined,
        general: { access: false, classes },
        perDomain: undefined,
      }),
    );
  await set(all);
  await bots(rig, siteId, "www.example.test", ["curl"]);
  rig.later(day);
  expect(await due(rig)).toEqual([]);
  rig.later(5 * day);
  const [weekly] = await due(rig);
  expect(weekly).toMatchObject({ text: expect.stringContaining("were let in") });
  expect(weekly).not.toMatchObject({ text: expect.stringContaining("Here ") });
  await set({ ...all, crawler: false });
  await bots(rig, siteId, "www.example.test", ["curl"]);
  rig.later(day);
  expect((await due(rig))[0]).toMatchObject({
    text: expect.stringContaining("Here feed readers, and libraries and tools are let in."),
  });
});

test("certificates: told at each step, by what the agent says it serves", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, "send_email_to_customer_about_certificates_expiring");
  const end = rig.clock.now.getTime() + 40 * day + 1;
  await rig.report(siteId, {}, [
    { names: ["www.example.test", "example.test"], not_after: new Date(end).toISOString() },
    { names: ["later.example.test"], not_after: yearsEnd },
  ]);
  const told: string[] = [];
  for (let i = 0; i < 45; i++) {
    rig.later(day);
    for (const one of await due(rig)) {
      const left = Math.floor((end - rig.clock.now.getTime()) / day);
      if (one.channel === "mail") told.push(`${left}: ${one.subject}`);
    }
  }
  expect(told).toEqual([
    ...[29, 13, 6, 2, 0].map((left) => `${left}: ada: 1 certificate about to expire`),
    "-1: ada: 1 certificate expired",
  ]);
});

test("certificates: of each host of a deployment, also of one that reported before another", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, "send_email_to_customer_about_certificates_expiring");
  const end = new Date(rig.clock.now.getTime() + 30.5 * day).toISOString();
  const old = [{ names: ["www.example.test"], not_after: end }];
  await rig.report(siteId, {}, old, "host-that-failed");
  await rig.report(siteId, {}, old, "host-that-failed-too");
  rig.later(30_000);
  await rig.report(siteId, {}, [], "host-that-is-well");
  rig.later(day);
  const told = (await due(rig)).flatMap((one) => (one.channel === "mail" ? [one.subject] : []));
  expect(told).toEqual(["ada: 1 certificate about to expire"]);
});

const heldBack = "ada@x.org: ada: image optimization is held back for today";
const blockedType = "send_email_to_customer_about_domain_images_optimization_blocked_for_today";

test("image variants held back: once a domain and day, also from an agent that says no day", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, blockedType);
  const events = async (blocked: number) => {
    await rig.report(siteId, { "www.example.test": { variants: { made: 0, blocked } } });
    await sendEvents(rig.deps);
    return subjects(await rig.messages());
  };
  expect(await events(0)).toEqual([]);
  expect(await events(12)).toEqual([heldBack]);
  expect(await events(20)).toEqual([]);
  rig.later(day);
  expect(await events(20)).toEqual([]);
  expect((await events(21)).length).toBe(1);
});

test("image variants held back: two hosts, a restart and a report again sum up, in one mail", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, blockedType);
  const today = rig.clock.now.toISOString().slice(0, 10);
  const report = async (host: string, since: number, domains: Record<string, [number, number]>) =>
    rig.report(
      siteId,
      Object.fromEntries(
        Object.entries(domains).map(([domain, [made, blocked]]) => {
          const from = new Date(rig.clock.now.getTime() + since).toISOString();
          const variants = { made, blocked, today: { since: from, day: today, made, blocked } };
          return [domain, { variants }];
        }),
      ),
      [],
      host,
    );
  await report("host-one", 0, { "www.example.test": [10, 3], "shop.example.test": [2, 1] });
  await report("host-one", 0, { "www.example.test": [10, 3], "shop.example.test": [2, 1] });
  await report("host-two", 0, { "www.example.test": [4, 5] });
  // A restart: the sums are higher, and yet all of them are new.
  await report("host-two", 1, { "www.example.test": [6, 7] });
  await sendEvents(rig.deps);
  const [mail, more] = await rig.messages();
  if (mail?.channel !== "mail" || more !== undefined) throw new Error("not one mail");
  expect(`${mail.to}: ${mail.subject}`).toBe(heldBack);
  for (const part of [
    "2 domains used up",
    "images.variants_per_day_max",
    "Until 00:00 UTC visitors get the originals",
    "GET /analytics/{domain}/images/",
  ])
    expect(mail.text.replaceAll(/\s+/g, " ")).toContain(part);
  expect(mail.text).toMatch(new RegExp(String.raw`www\.example\.test\s+${today}\s+20\s+15`));
  expect(mail.text).toMatch(new RegExp(String.raw`shop\.example\.test\s+${today}\s+2\s+1`));
  await report("host-two", 1, { "www.example.test": [6, 70] });
  await sendEvents(rig.deps);
  expect(await rig.messages()).toEqual([]);
});

test("image variants held back: what is told after midnight is of the day before, and no mail of today", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, blockedType);
  const events = async (blocked: number, ofDay: number) => {
    const now = rig.clock.now.toISOString();
    const today = { since: "2031-05-06T06:00:00.000Z", day: now.slice(0, 10), made: 0 };
    const variants = { made: 0, blocked, today: { ...today, blocked: ofDay } };
    await rig.report(siteId, { "www.example.test": { variants } });
    await sendEvents(rig.deps);
    return subjects(await rig.messages());
  };
  expect(await events(5, 5)).toEqual([heldBack]);
  rig.later(day);
  // Its mail is there; eight more were held back before midnight.
  expect(await events(13, 0)).toEqual([]);
  expect(await events(14, 1)).toEqual([heldBack]);
  // A host that was out of touch over midnight: told late, in other words.
  const variants = { made: 0, blocked: 3 };
  const late = { since: "2031-05-06T06:00:00.000Z", day: "2031-05-07", made: 0, blocked: 0 };
  await rig.report(siteId, { "shop.example.test": { variants: { ...variants, today: late } } }, []);
  await sendEvents(rig.deps);
  expect(subjects(await rig.messages())).toEqual([
    "ada@x.org: ada: image optimization was held back yesterday",
  ]);
  const days = await rig.store.selectFrom("image_days").select(["day", "blocked"]).execute();
  expect(days.toSorted((a, b) => a.blocked - b.blocked)).toEqual([
    { day: "2031-05-07", blocked: 1 },
    { day: "2031-05-06", blocked: 3 },
    { day: "2031-05-06", blocked: 13 },
  ]);
});

test("image variants held back: no subscription, no mail; and what lies days back is no news", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  const report = async (blocked: number, since: string) => {
    const now = rig.clock.now.toISOString().slice(0, 10);
    const today = { since, day: now, made: 0, blocked: 0 };
    await rig.report(siteId, { "www.example.test": { variants: { made: 0, blocked, today } } });
    await sendEvents(rig.deps);
    return rig.messages();
  };
  expect(await report(5, "2031-05-06T06:00:00.000Z")).toEqual([]);
  // Who subscribes afterwards is not told of what was.
  await subscribe(rig, ada.customerId, blockedType);
  expect(await report(6, "2031-05-06T06:00:00.000Z")).toEqual([]);
  rig.later(9 * day);
  expect(await report(7, "2031-05-12T06:00:00.000Z")).toEqual([]);
});
