// Reported counts of unreviewed bots: added once each, for domains of the site only, by day, within limits, for as long as they are shown.

import { expect, test } from "vitest";
import { dropUnreviewed } from "../../../src/central/store/bots/unreviewed-counting.ts";
import type { Report } from "../../../src/wire/channel.ts";
import { fakeDescription } from "../../../src/wire/other-bots.ts";
import {
  name16,
  secret16,
  seedSite,
  startAgentSide,
  type AgentSide,
} from "../../support/agent-side.ts";
import { connectAgent, reportOf } from "../../support/fake-agent.ts";

const domain = "www.example.test";
const googlebot = { name: "Googlebot", description: "Google's crawler" };

type Bots = readonly { name: string; description: string | null; requests: number }[];

function report(seq: number, bots: Bots, options: Partial<Report["counted"]> & { on?: string }) {
  const { on = domain, boot_id = "boot-1" } = options;
  const backend = { requests: 0, errors: 0, latency_buckets: {}, reachable: true };
  return {
    ...reportOf("instance-1", 0),
    counted: { boot_id, seq },
    domains: [{ domain: on, backend, unreviewed_bots: [...bots] }],
  };
}

const once = (name: string, requests = 1): Bots => [{ name, description: null, requests }];

async function stored({ store }: AgentSide) {
  return store
    .selectFrom("unreviewed_bots")
    .select(["domain_id", "day", "name", "description", "requests"])
    .orderBy("day")
    .orderBy("name")
    .execute();
}

test("a repeated report counts once, whichever way it comes; another start counts anew", async () => {
  await using side = await startAgentSide();
  const { siteId, domainId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  using channel = await agent.channel();
  channel.hello(side.agentStore.epoch);
  await channel.next("welcome");
  const first = report(1, [{ ...googlebot, requests: 3 }, ...once("own", 2)], {});
  const post = async (body: Report) =>
    (await agent.call("/reports", { method: "POST", body: JSON.stringify(body) })).status;

  channel.say({ type: "report", report: first });
  expect((await channel.next("report_ack")).counted).toEqual({ boot_id: "boot-1", seq: 1 });
  channel.say({ type: "report", report: first });
  await channel.next("report_ack", 2);
  expect(await post(first)).toBe(204);
  expect(await post(report(2, [{ ...googlebot, requests: 1 }], {}))).toBe(204);
  expect(await post(report(1, once("own", 5), { boot_id: "boot-2" }))).toBe(204);
  // Of the start before, long overtaken.
  expect(await post(report(2, once("own", 100), {}))).toBe(204);
  // A report that names no batch counts nothing.
  await side.agentStore.saveReport(siteId, {
    ...reportOf("instance-1", 0),
    domains: first.domains,
  });

  const row = { domain_id: domainId, day: "2030-01-15" };
  expect(await stored(side)).toEqual([
    { ...row, ...googlebot, requests: 4 },
    { ...row, name: "own", description: null, requests: 7 },
  ]);
});

test("a domain that is not linked to the site is not counted, whoever has one of that name", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const other = await seedSite(side.store, "ffeeddccbbaa9988");
  await side.agentStore.saveReport(siteId, report(1, once("a"), { on: "elsewhere.example.test" }));
  await side.agentStore.saveReport(other.siteId, report(1, once("b"), {}));
  expect(await stored(side)).toMatchObject([{ domain_id: other.domainId, name: "b" }]);
});

test("by day of arrival; what is too old to be shown goes, batches when nothing repeats them", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const dayMs = 86_400_000;
  for (const seq of [1, 2, 3]) {
    await side.agentStore.saveReport(siteId, report(seq, once("a", seq), {}));
    side.clock.ms += dayMs;
  }
  const days = ["2030-01-15", "2030-01-16", "2030-01-17"];
  expect((await stored(side)).map(({ day }) => day)).toEqual(days);
  side.clock.ms = Date.parse("2030-02-14T00:00:00Z"); // The 30th day of 2030-01-16.
  expect(await dropUnreviewed(side.store, side.clock.now())).toBe(1);
  expect((await stored(side)).map(({ day }) => day)).toEqual(days.slice(1));
  side.clock.ms = Date.parse("2030-04-18T00:00:00Z"); // The last batch came ninety days and a bit before.
  expect(await dropUnreviewed(side.store, side.clock.now())).toBe(3);
  expect(await side.store.selectFrom("counted_batches").selectAll().execute()).toEqual([]);
});

test("made-up names of fakes end in other, and push out no others", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const fake = (name: string): Bots => [{ name, description: fakeDescription, requests: 1 }];
  const flood = (seq: number): Bots =>
    Array.from({ length: 400 }, (_, no) => fake(`${seq}-${no}-Googlebot`)).flat();
  for (const seq of [1, 2, 3])
    await side.agentStore.saveReport(
      siteId,
      report(seq, [...fake("Googlebot"), ...flood(seq), ...once(`own-${seq}`)], {}),
    );
  const rows = await stored(side);
  const of = (name: string) => rows.find((row) => row.name === name)?.requests;
  expect([of("Googlebot"), of("other"), of("own-3")]).toEqual([3, 701, 1]);
  expect(rows.length).toBe(504);
});

test("made-up names end in other, known crawlers never do, and nothing is left out", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const flood = (seq: number): Bots =>
    Array.from({ length: 400 }, (_, no) => once(`made-up-${seq}-${no}`)).flat();
  for (const seq of [1, 2, 3])
    await side.agentStore.saveReport(
      siteId,
      report(seq, [...flood(seq), { ...googlebot, requests: 1 }], {}),
    );
  const rows = await stored(side);
  expect(rows.length).toBe(502);
  const of = (name: string) => rows.find((row) => row.name === name)?.requests;
  expect([of("Googlebot"), of("other"), of("made-up-1-0")]).toEqual([3, 700, 1]);
});
