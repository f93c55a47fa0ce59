// The warning of hosts that do not obey policies for classes of bots: from the first refusal to the last, and in `accel-central status`.

import { expect, test } from "vitest";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { startClassWarnings } from "../../../src/central/jobs/class-warnings.ts";
import { announceClasses } from "../../../src/central/store/journal/told-classes.ts";
import { centralStatusCommand } from "../../../src/cli/central-status.ts";
import { decodeSnapshot } from "../../../src/wire/snapshot.ts";
import { run } from "../../cli/command-rig.ts";
import { seedSite, startAgentSide } from "../../support/agent-side.ts";
import { call, settingsOf, start } from "../../support/central-whole.ts";
import { connectAgent } from "../../support/fake-agent.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const code = "bot_classes_unknown";
const dayMs = 86_400_000;
/** What agents of the release before send. */
const olderTakes = "extension";

async function scene() {
  const side = await startAgentSide();
  const health = new Health(side.clock.now);
  const { siteId } = await seedSite(side.store);
  const tell = async (domains: Parameters<typeof announceClasses>[2]["domains"]) =>
    side.customers.transact(async (work) => announceClasses(work, [siteId], { domains }));
  const refuse = async (seq: number, instances: readonly string[]): Promise<void> => {
    const receipt = { seq, phase: "refused", detail: {}, took_ms: 0 } as const;
    for (const instance of instances)
      await side.agentStore.saveReceipts(siteId, instance, [receipt]);
  };
  const look = async () => {
    await using _ = startClassWarnings({
      store: side.store,
      health,
      now: side.clock.now,
      log: silentLog(),
    });
  };
  const texts = async (): Promise<readonly string[]> => {
    await look();
    return health.list().map(({ text }) => text);
  };
  return { side, siteId, tell, refuse, texts, health };
}

test("hosts are named while they refuse what was told last, and are seen", async () => {
  const { side, tell, refuse, texts, health } = await scene();
  await using _ = side;
  expect(await texts()).toEqual([]);
  await tell([{ domain: "www.example.test", feed: true }]);
  await refuse(1, ["0123456789abcdef"]);
  expect(await texts()).toEqual([
    "1 host goes by unknown_bots_can_access alone: its release knows no policies for classes of bots (01234567 of 00112233445566aa)",
  ]);
  expect(health.list()).toMatchObject([
    { code, severity: "warning", hint: "Update accel-agent there." },
  ]);
  const others = Array.from({ length: 11 }, (_none, no) => `${String(no).padStart(8, "a")}-more`);
  await refuse(1, others);
  expect(await texts()).toEqual([
    expect.stringMatching(
      /^12 hosts go by unknown_bots_can_access alone: their release knows .* \(01234567 of .*, 2 more\)$/,
    ),
  ]);
  side.clock.ms += dayMs + 1;
  expect(await texts()).toEqual([]);
  await refuse(1, ["0123456789abcdef"]); // It is seen again.
  expect(await texts()).toEqual([expect.stringMatching(/^1 host goes/)]);
  await tell([{ domain: "www.example.test", crawler: true }]);
  expect(await texts()).toEqual([]);
  await refuse(2, ["0123456789abcdef"]);
  expect(await texts()).toHaveLength(1);
  await tell([]);
  await refuse(3, ["0123456789abcdef"]);
  expect(await texts()).toEqual([]);
});

test("a host of a site that was deleted is not warned of", async () => {
  const { side, siteId, tell, refuse, texts } = await scene();
  await using _ = side;
  await tell([{ domain: "www.example.test", feed: true }]);
  await refuse(1, ["instance-1"]);
  expect(await texts()).toHaveLength(1);
  await side.store
    .updateTable("deployment_sites")
    .set({ when_deleted: side.clock.now().toISOString() })
    .where("id", "=", siteId)
    .execute();
  expect(await texts()).toEqual([]);
});

test("the job looks again by itself", async () => {
  const { side, tell, refuse, health } = await scene();
  await using _ = side;
  await using _job = startClassWarnings({
    store: side.store,
    health,
    now: side.clock.now,
    log: silentLog(),
    intervalMs: 10,
  });
  await tell([{ domain: "www.example.test", feed: true }]);
  await refuse(1, ["instance-1"]);
  await until("it is warned of", () => health.list().length === 1);
  await tell([{ domain: "www.example.test", feed: true }]);
  await until("it is over", () => health.list().length === 0);
  expect(health.list()).toEqual([]);
});

test("accel-central status and the fleet tell of a host of the release before", async () => {
  using dir = tempDir();
  let token = "";
  {
    await using central = await start(settingsOf(dir.path));
    const trial = await call(central.url, "POST", "/trial/", undefined, { username: "alice" });
    token = String(trial["token"]);
    const site = await call(central.url, "POST", "/deployment-site/", token, { tags: "eu" });
    const domain = { name: "www.example.com", link_to_deployment_sites_with_tags: "eu" };
    await call(central.url, "POST", "/domain/", token, domain);
    const agent = await connectAgent(
      central.agents,
      String(site["name16"]),
      String(site["secret16"]),
    );
    const snapshot = decodeSnapshot(await (await agent.call("/snapshot")).json());
    if (!snapshot.ok) throw new Error(JSON.stringify(snapshot.errors));
    using channel = await agent.channel(olderTakes);
    channel.hello(snapshot.value.epoch, snapshot.value.seq, snapshot.value.chain);
    await channel.next("welcome");
    await call(central.url, "POST", "/bot-access-policy/", token, {
      general_policy: { unknown_bots_can_access: false, unknown_feeds_can_access: true },
    });
    const told = await until("it is told", () =>
      channel.entries.find(({ kind }) => kind === "policy.classes"),
    );
    channel.receipt(told.seq, "refused", { reason: "unknown kind" });
    await channel.next("receipt_ack");
  }
  await using central = await start(settingsOf(dir.path));
  const status = await until("it is warned of", async () => {
    const text = await run(centralStatusCommand, ["--state-dir", dir.path]);
    return text.includes(code) && text;
  });
  expect(status).toContain("1 host goes by unknown_bots_can_access alone");
  expect(await call(central.url, "GET", "/fleet/", token)).toMatchObject({
    sites: [{ instances: [{ warnings: [{ code }] }] }],
  });
  const metrics = await (await fetch(`${central.url}/metrics`)).text();
  expect(metrics).toContain(`accel_central_warning{code="${code}",severity="warning"} 1`);
});
