// Alerts from agents' reports: when they fire and resolve, to whom they go, what they say.

import { expect, test } from "vitest";
import { evaluateAlerts } from "../../src/central/alerting.ts";
import { samplesOf } from "../../src/central/store/content/domain-reports.ts";
import {
  staleListType,
  unreachableBackendType as unreachable,
} from "../../src/wire/customer/notifications.ts";
import { emptySetDigest } from "../../src/core/addresses/set-digest.ts";
import {
  fetchSourceNow,
  putSource,
  settleSource,
  takeSource,
  type SourceEnd,
} from "../../src/central/store/bots/bot-sources.ts";
import { addSubscription } from "../../src/central/store/notices/subscriptions.ts";
import type { Change } from "../../src/central/agents/changes.ts";
import { dropEndedAlerts, toldAlerts } from "../../src/central/store/notices/alerts.ts";
import { alertScene as scene, evaluate } from "../support/alert-scene.ts";
import { openNoticeRig } from "../support/notice-rig.ts";
import { unlinkById } from "../../src/central/store/journal/links.ts";
import { findDomain } from "../../src/central/store/content/domains.ts";

const rules = { slowAboveS: 2, slowPercent: 50, slowRequests: 5 };
const minute = 60_000;

function backend(requests: number, errors: number, fast: number, all: number) {
  const latency_buckets = { "0.5": 0, "2": fast, "10": all, "+Inf": all };
  return { requests, errors, latency_buckets, reachable: true };
}

const checked = (checks: "up" | "down", requests: number, errors: number) => ({
  ...backend(requests, errors, 0, 0),
  checks,
});

test.each<[string, ReturnType<typeof backend>, ReturnType<typeof backend> | undefined, unknown[]]>([
  ["nothing happened", backend(9, 9, 4, 9), backend(9, 9, 4, 9), [undefined, undefined]],
  ["all failed", backend(10, 3, 7, 7), backend(7, 0, 7, 7), ["bad", undefined]],
  ["one of two failed", backend(2, 1, 1, 1), undefined, ["good", "good"]],
  ["the agent began anew", backend(2, 2, 0, 0), backend(100, 0, 90, 100), ["bad", undefined]],
  ["slow, and enough of it", backend(6, 0, 2, 6), undefined, ["good", "bad"]],
  ["half is not more than half", backend(6, 0, 3, 6), undefined, ["good", "good"]],
  ["slow, but too few to say", backend(4, 0, 0, 4), undefined, ["good", undefined]],
  ["few and fast", backend(1, 0, 1, 1), undefined, ["good", "good"]],
  ["nobody asked, its checks fail", checked("down", 9, 0), backend(9, 0, 0, 0), ["bad", undefined]],
  ["nobody asked, a check is good", checked("up", 9, 9), backend(9, 9, 0, 0), ["good", undefined]],
  ["visitors say more", checked("down", 2, 1), undefined, ["good", undefined]],
])("a sample: %s", (_, now, before, verdicts) => {
  expect(samplesOf(now, before, rules).map(({ verdict }) => verdict)).toEqual(verdicts);
});

test("a list of bots that has not come for three intervals: one message, and one when it has come", async () => {
  await using rig = await openNoticeRig();
  const { ada } = await scene(rig);
  const { customerId } = ada;
  const type = staleListType;
  await rig.run(async (work) =>
    addSubscription(work, { customerId, channel: "monitor", type, email: "a@x.org" }, 99),
  );
  const place = await rig.run(async (work) => {
    const domain = await findDomain(work, customerId, "www.example.test");
    const host = "www.example.test";
    return { domainId: domain?.id ?? 0, host, set: "bad", bot: "Scraper" } as const;
  });
  const url = "https://lists.example/a.txt?key=secret";
  const attempt = async (end: SourceEnd): Promise<void> =>
    rig.run(async (work) => {
      await fetchSourceNow(work, place, false);
      const taken = await takeSource(work, "one");
      if (taken !== undefined) await settleSource(work, taken, end, 0);
    });
  await rig.run(async (work) =>
    putSource(work, place, { url, isPublished: false, intervalS: 86_400, createdBy: "ada" }),
  );
  const failed = { outcome: "failed", reason: "the server answered 500" } as const;
  await attempt(failed);
  rig.later(3 * 86_400_000 - 1_000);
  await attempt(failed);
  expect(await evaluate(rig)).toEqual([]);
  rig.later(1_000);
  const title = "The bad list of Scraper is not fetched: www.example.test";
  const fired = await evaluate(rig);
  expect(fired).toEqual([
    `a@x.org: [ops-mail] ${title}`,
    `https://hook.example/ops: [ops] ${title}\n• www.example.test, bad list of Scraper from lists.example: came last 2031-05-06 07:00 UTC; the server answered 500`,
  ]);
  expect(await evaluate(rig)).toEqual([]);
  const good = { outcome: "unchanged", told: { etag: null, lastModified: null } } as const;
  await attempt({ ...good, digest: emptySetDigest });
  expect(await evaluate(rig)).toEqual([
    `a@x.org: [ops-mail] Resolved: the lists of bots of www.example.test are fetched again`,
    `https://hook.example/ops: [ops] Resolved: the lists of bots of www.example.test are fetched again\n• www.example.test (alert since 2031-05-09 07:00 UTC)`,
  ]);
});

test("unreachable: one message on firing after the time, one on resolving, to chats and subscribers", async () => {
  await using rig = await openNoticeRig();
  const { siteId } = await scene(rig);
  let requests = 0;
  const fail = async (errors: boolean): Promise<void> => {
    requests += 3;
    const one = { requests, errors: errors ? requests : 0 };
    // Counts of errors only ever grow: good reports repeat the last.
    await rig.report(siteId, {
      "www.example.test": { ...one, errors: errors ? (failed += 3) : failed },
      "shop.example.test": { requests: 1, buckets: [1, 1] },
    });
  };
  let failed = 0;
  await fail(false);
  for (let i = 0; i < 10; i++) {
    await fail(true);
    expect(await evaluate(rig)).toEqual([]);
    rig.later(30_000);
  }
  await fail(true);
  const fired = await evaluate(rig);
  const title = "Backend unreachable from edge-1: www.example.test";
  expect(fired).toEqual([
    `a@x.org: [ops-mail] ${title}`,
    `b@x.org: [ops-mail] ${title}`,
    `https://hook.example/ops: [ops] ${title}\n• www.example.test: since 2031-05-06 07:00 UTC, 3 of 3 requests failed in the last half minute, seen from edge-1`,
  ]);
  rig.later(30_000);
  await fail(true);
  expect(await evaluate(rig)).toEqual([]);

  // Good for less than the time is not good.
  await fail(false);
  rig.later(4 * minute);
  await fail(true);
  rig.later(2 * minute);
  expect(await evaluate(rig)).toEqual([]);
  await fail(false);
  rig.later(5 * minute - 1);
  expect(await evaluate(rig)).toEqual([]);
  rig.later(1);
  const resolved = await evaluate(rig);
  expect(resolved.length).toBe(3);
  expect(resolved[0]).toBe(
    "a@x.org: [ops-mail] Resolved: edge-1 reaches the backend of www.example.test again",
  );
  expect(await evaluate(rig)).toEqual([]);
});

test("an alert that could not be told for a day is told no more", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n");
  const { siteId } = await scene(rig);
  await rig.report(siteId, { "www.example.test": { requests: 3, errors: 3 } });
  while (await evaluateAlerts(rig.deps));
  const rows = await rig.store
    .selectFrom("outbox")
    .select(["when_created", "expires_at"])
    .execute();
  expect(rows).toHaveLength(3);
  for (const { when_created: made, expires_at: end } of rows)
    expect(Date.parse(end) - Date.parse(made)).toBe(24 * 60 * minute);
});

test("slow: by domain, whoever sees it; several at once are one message", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n  resolved_after: 0s\n");
  const { siteId } = await scene(rig);
  const bad = { requests: 10, buckets: [1, 10] } as const;
  await rig.report(siteId, { "www.example.test": bad, "shop.example.test": bad });
  expect(await evaluate(rig)).toEqual([
    // b@x.org is suspended.
    "a@x.org: [ops-mail] Slow backend: 2 domains",
    expect.stringMatching(
      /^https:\/\/hook.example\/ops: \[ops\] Slow backend: 2 domains\n• shop.example.test: since .*, 9 of 10 requests slow .*\n• www/,
    ),
  ]);
  const good = { requests: 20, buckets: [11, 20] } as const;
  await rig.report(siteId, { "www.example.test": good, "shop.example.test": bad });
  const resolved = await evaluate(rig);
  expect(resolved).toEqual([
    "a@x.org: [ops-mail] Resolved: the backend of www.example.test answers in time again",
    expect.stringContaining("www.example.test (alert since 2031-05-06 07:00 UTC)"),
  ]);
});

test("without an e-mail channel nobody is mailed; an unlinked domain's alert ends", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n");
  const { siteId, ada } = await scene(rig);
  await rig.store.deleteFrom("email_channels").execute();
  const bad = { "www.example.test": { requests: 10, buckets: [1, 10] } } as const;
  await rig.report(siteId, bad);
  expect((await evaluate(rig)).map((line) => line.split(":")[0])).toEqual(["https"]);
  const domain = await rig.run(async (work) =>
    findDomain(work, ada.customerId, "www.example.test"),
  );
  await rig.run(async (work) =>
    unlinkById(work, { domainId: domain?.id ?? 0, deploymentSiteId: siteId }),
  );
  expect((await evaluate(rig))[0]).toContain("Resolved");
  await rig.report(siteId, bad);
  expect(await evaluate(rig)).toEqual([]);
});

test("what was told survives a restart: alerts lie in the store", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n");
  const { siteId } = await scene(rig);
  await rig.report(siteId, { "www.example.test": { requests: 2, errors: 2 } });
  expect((await evaluate(rig)).length).toBe(3);
  // Nothing of the evaluation is in memory: each call begins from the store.
  expect(await evaluate(rig)).toEqual([]);
  expect(await rig.store.selectFrom("alerts").select(["type", "edge"]).execute()).toEqual([
    { type: unreachable, edge: "edge-1" },
  ]);
});

test("a backend that nobody asks is judged by its active checks", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n  resolved_after: 0s\n");
  const { siteId } = await scene(rig);
  await rig.report(siteId, { "www.example.test": { checks: "down" } });
  expect((await evaluate(rig)).at(-1)).toBe(
    "https://hook.example/ops: [ops] Backend unreachable from edge-1: www.example.test\n• www.example.test: since 2031-05-06 07:00 UTC, it fails its check, seen from edge-1",
  );
  // Without checks nothing is known: it goes on.
  rig.later(minute);
  await rig.report(siteId, { "www.example.test": {} });
  expect(await evaluate(rig)).toEqual([]);
  await rig.report(siteId, { "www.example.test": { checks: "up" } });
  rig.later(minute);
  expect((await evaluate(rig)).map((line) => line.includes("Resolved"))).toEqual([
    true,
    true,
    true,
  ]);
});

test("two bad half minutes with good ones between them are no trouble that lasts", async () => {
  await using rig = await openNoticeRig();
  const { siteId } = await scene(rig);
  const counts = { requests: 0, errors: 0 };
  const half = async (isBad: boolean): Promise<readonly string[]> => {
    counts.requests += 3;
    if (isBad) counts.errors += 3;
    await rig.report(siteId, { "www.example.test": counts });
    const told = await evaluate(rig);
    rig.later(minute / 2);
    return told;
  };
  for (const isBad of [true, ...Array.from({ length: 9 }, () => false), true])
    expect(await half(isBad)).toEqual([]);
  // From the second of them on it lasts.
  for (let i = 0; i < 9; i++) expect(await half(true)).toEqual([]);
  const fired = await half(true);
  expect(fired.at(-1)).toContain("www.example.test: since 2031-05-06 07:05 UTC");
});

test("an alert that ended is kept for 90 days, with the only site that saw it; what begins and ends is told as a change", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n  resolved_after: 0s\n");
  const { siteId, ada } = await scene(rig);
  const told: Change[] = [];
  const changes = { publish: (change: Change) => void told.push(change) };
  const step = async (requests: number): Promise<void> => {
    await rig.report(siteId, { "www.example.test": { requests, errors: 3 } });
    rig.later(minute);
    while (await evaluateAlerts({ ...rig.deps, changes }));
  };
  const list = async (domains: readonly string[] | null, since = "") =>
    rig.run(async (work) => toldAlerts(work, { customerId: ada.customerId, domains }, since, 200));
  await step(3);
  const whenFired = rig.deps.now().toISOString();
  const firing = {
    id: 1,
    type: unreachable,
    edge: "edge-1",
    domain: "www.example.test",
    deploymentSiteId: siteId,
    whenFired,
    whenEnded: null,
  };
  expect(await list(null)).toEqual([firing]);
  expect(await list(["www.example.test"])).toEqual([firing]);
  expect(await list(["shop.example.test"])).toEqual([]);
  await step(20);
  const whenEnded = rig.deps.now().toISOString();
  expect(await list(null)).toEqual([{ ...firing, whenEnded }]);
  expect(await list(null, whenEnded)).toHaveLength(1);
  expect(await list(null, `${whenEnded}x`)).toEqual([]);
  const change = {
    kind: "customer",
    customerId: ada.customerId,
    topics: ["alerts"],
    domains: ["www.example.test"],
  };
  expect(told).toEqual([change, change]);
  const later = (days: number): Date => new Date(Date.parse(whenEnded) + days * 24 * 60 * minute);
  await dropEndedAlerts(rig.store, later(90));
  expect(await list(null)).toHaveLength(1);
  await dropEndedAlerts(rig.store, new Date(later(90).getTime() + 1));
  expect(await list(null)).toEqual([]);
});
