// Messages of alerts: many at one time are told together, too many for an hour in the next one, and each goes where its channel leads.

import { expect, test } from "vitest";
import { evaluateAlerts } from "../../src/central/alerting.ts";
import { unreachableBackendType as unreachable } from "../../src/wire/customer/notifications.ts";
import { alertScene as scene, evaluate } from "../support/alert-scene.ts";
import { openNoticeRig, type NoticeRig } from "../support/notice-rig.ts";
import { linkById } from "../../src/central/store/journal/links.ts";
import { findDomain } from "../../src/central/store/content/domains.ts";
import { addSubscription } from "../../src/central/store/notices/subscriptions.ts";
import { chatChannels, emailChannels } from "../../src/central/store/notices/monitor-channels.ts";

const minute = 60_000;
type Scene = Awaited<ReturnType<typeof scene>>;

/** A domain of ada's on so many edge servers, all in trouble with its backend or all well. */
async function edges(rig: NoticeRig, ada: Scene["ada"], count: number) {
  const sites: number[] = [];
  const name = "many.example.test";
  for (let i = 1; i <= count; i++) {
    const siteId = await rig.site(ada);
    if (i === 1) await rig.domain(ada, name, siteId);
    const domain = await rig.run(async (work) => findDomain(work, ada.customerId, name));
    if (i > 1)
      await rig.run(async (work) =>
        linkById(work, { domainId: domain?.id ?? 0, deploymentSiteId: siteId }),
      );
    await rig.hello(siteId, "1.0.0", `pop-${i}`);
    sites.push(siteId);
  }
  return async (one: { requests: number; errors: number }): Promise<void> => {
    for (const siteId of sites) await rig.report(siteId, { [name]: one });
  };
}

test("many edge servers at one time are told together, each by name, when it begins and when it is over", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n  resolved_after: 0s\n");
  const { ada } = await scene(rig);
  const report = await edges(rig, ada, 60);
  await report({ requests: 3, errors: 3 });
  const named = (lines: readonly string[]): readonly string[] =>
    lines
      .filter((line) => line.startsWith("https"))
      .flatMap((line) => line.match(/pop-\d+/g) ?? [])
      .toSorted((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const all = Array.from({ length: 60 }, (_, i) => `pop-${i + 1}`);

  const fired = await evaluate(rig);
  expect(fired.length).toBe(6);
  expect(fired[0]).toBe(
    "a@x.org: [ops-mail] Backend unreachable from 50 edge servers: many.example.test",
  );
  expect(fired.at(-2)).toMatch(
    /: \[ops\] Backend unreachable from 50 edge servers: many.example.test\n• many.example.test: since .*, 150 of 150 requests failed in the last half minute, seen from pop-1, pop-2, pop-3, /,
  );
  expect(named(fired)).toEqual(all);

  rig.later(minute);
  await report({ requests: 6, errors: 3 });
  const resolved = await evaluate(rig);
  expect(resolved.length).toBe(6);
  expect(resolved.at(-1)).toBe(
    `https://hook.example/ops: [ops] Resolved: 10 edge servers reach the backend of many.example.test again\n• many.example.test (alert since 2031-05-06 07:00 UTC, seen from ${all.slice(50).join(", ")})`,
  );
  expect(named(resolved)).toEqual(all);
});

test("more than the limit of an hour is told in the next one, and another customer's at once", async () => {
  await using rig = await openNoticeRig(
    "alerts:\n  after: 0s\n  resolved_after: 0s\nlimits:\n  mails_per_address: 1\n",
  );
  const { siteId } = await scene(rig);
  const bob = await rig.customer("bob");
  const key = { customerId: bob.customerId, channel: "monitor", type: unreachable } as const;
  await rig.run(async (work) => {
    await emailChannels(work).create(bob.customerId, { monitor_uid: "bob-mail" }, 9);
    await addSubscription(work, { ...key, email: "a@x.org" }, 99);
  });
  await rig.report(siteId, { "www.example.test": { requests: 3, errors: 3 } });
  expect((await evaluate(rig)).length).toBe(3);
  rig.later(minute);
  await rig.report(siteId, { "www.example.test": { requests: 6, errors: 3 } });
  expect(await evaluate(rig)).toEqual([]);

  const others = await rig.site(bob);
  await rig.domain(bob, "bob.example.test", others);
  await rig.hello(others, "1.0.0", "edge-bob");
  await rig.report(others, { "bob.example.test": { requests: 3, errors: 3 } });
  expect(await evaluate(rig)).toEqual([
    "a@x.org: [bob-mail] Backend unreachable from edge-bob: bob.example.test",
  ]);
  rig.later(59 * minute);
  const resolved = await evaluate(rig);
  expect(resolved.map((line) => line.includes("Resolved"))).toEqual([true, true, true]);
});

test("what waits for a hook goes where its channel leads now", async () => {
  await using rig = await openNoticeRig("alerts:\n  after: 0s\n");
  const { siteId, ada } = await scene(rig);
  await rig.report(siteId, { "www.example.test": { requests: 3, errors: 3 } });
  await evaluateAlerts(rig.deps);
  const { customerId } = ada;
  await rig.run(async (work) => {
    const [channel] = await chatChannels(work).list(customerId, { after: 0, limit: 9 });
    const hook = { chat_channel_name: "#x", chat_hook_url: "https://hook.example/rotated" };
    await chatChannels(work).update(customerId, channel?.id ?? 0, {
      monitor_uid: "ops",
      ...hook,
    });
  });
  const posts = (await evaluate(rig)).filter((line) => line.startsWith("https"));
  expect(posts.map((line) => line.split(": ")[0])).toEqual(["https://hook.example/rotated"]);
});
