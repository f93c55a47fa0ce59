// Unreviewed bots from the edge to the customer: real agent, real central. Central is killed in between; the agent is stopped, and killed.

import { join } from "node:path";
import { expect, test } from "vitest";
import { keptCountsKey, type Kept } from "../../src/agent/bots/unreviewed/kept-counts.ts";
import { openSqlite } from "../../src/base/sqlite.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { until } from "../support/until.ts";

type Listed = readonly {
  readonly domain_name: string;
  readonly domain_policy: string;
  readonly bots: readonly {
    readonly name: string;
    readonly description: string | null;
    readonly requests: number;
  }[];
}[];

test("curl and a claim to be Googlebot from outside are shown with counts, Googlebot itself is not", async () => {
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, "http://127.0.0.1:9", "unreviewed");
  await script.enrol();
  await edge.startAgent();
  const { api } = edge;
  await api.post("/domain/", { name: domain, deployment_site_id: script.siteId });
  const vip = { attach_to_bot: "Googlebot", attach_to_domain: domain };
  await api.post("/mark-as-vip-bot/198.51.100.0_24/", vip);
  await api.post("/bot-access-policy/", { allow_access: [{ domain, bot: "Googlebot" }] });

  const visit = async (userAgent: string, address: string) =>
    edge.visit("/", { host: domain, userAgent, headers: { "x-forwarded-for": address } });
  // No devlove is active: whoever is let in is answered 503.
  await until(
    "the mark is in force",
    async () => (await visit("FirstLook/1.0", "198.51.100.1")).status === 503,
    120_000,
  );
  const google = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
  expect((await visit(google, "198.51.100.7")).status).toBe(503);
  const claim = await visit(google, "203.0.113.9");
  expect([claim.status, claim.body.toString()]).toEqual([
    403,
    expect.stringMatching(/\(fake-blocked-by-default\)/),
  ]);
  for (let no = 0; no < 3; no++) await visit("curl/8.14.1", "203.0.113.9");
  expect((await visit("Mozilla/5.0 (X11) Firefox/140.0", "203.0.113.9")).status).toBe(503);

  await edge.central.kill();
  for (let no = 0; no < 4; no++) await visit("curl/8.14.1", `203.0.113.${no}`);
  await edge.central.restart();
  const bots = await until(
    "all counts",
    async () => {
      const [listed] = (await api.get("/unreviewed-bots/")).body as Listed;
      return listed?.bots.some((bot) => bot.name === "curl" && bot.requests >= 7) && listed;
    },
    // After a backoff of up to a minute comes a report, one a minute.
    200_000,
  );
  expect(bots).toMatchObject({
    domain_name: domain,
    domain_policy: "Unreviewed bots can not access the domain (by default: no policy is set).",
  });
  expect(bots.bots.filter(({ name }) => name !== "FirstLook")).toEqual([
    { name: "curl", description: expect.stringMatching(/cURL/), requests: 7 },
    { name: "Googlebot", description: expect.stringMatching(/^A fake: /), requests: 1 },
  ]);
  const metrics = await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`);
  const counted = /accel_agent_unreviewed_bots_total\{domain="(.*?)"\} (\d+)/.exec(
    await metrics.text(),
  );
  expect(counted?.[1]).toBe(domain);
  expect(Number(counted?.[2])).toBeGreaterThanOrEqual(8);
}, 400_000);

test("no count is lost when the agent stops, and a kill loses those of the last seconds alone", async () => {
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, "http://127.0.0.1:9", "unreviewed");
  await script.enrol();
  await edge.startAgent();
  const { api } = edge;
  await api.post("/domain/", { name: domain, deployment_site_id: script.siteId });
  const visit = async (userAgent: string) => edge.visit("/", { host: domain, userAgent });
  await until("it is served", async () => (await visit("FirstLook/1.0")).status === 403, 120_000);
  const counted = async (): Promise<Readonly<Record<string, number>>> => {
    const [listed] = (await api.get("/unreviewed-bots/")).body as Listed;
    return Object.fromEntries((listed?.bots ?? []).map(({ name, requests }) => [name, requests]));
  };
  // A report in between may have had some of them.
  const told = async (name: string): Promise<unknown> =>
    until(`50 of ${name} are told`, async () => ((await counted())[name] ?? 0) >= 50, 120_000);

  for (let no = 0; no < 50; no++) await visit("curl/8.14.1");
  expect(await edge.agent.terminate()).toBe(0);
  await edge.agent.restart();
  await told("curl");

  for (let no = 0; no < 50; no++) await visit("Wget/1.21.3");
  const isKept = async (): Promise<boolean> => {
    const { sent, counts } = keptOf(edge.dir, "Wget");
    return Math.max((await counted())["Wget"] ?? 0, sent) + counts >= 50;
  };
  await until("they are kept", isKept, 60_000);
  await edge.agent.kill();
  await edge.agent.restart();
  await told("Wget");
  expect(await counted()).toMatchObject({ curl: 50, Wget: 50 });
}, 400_000);

/** How many requests of a bot the agent would find at a start: in the batch that may be told already, and in none. */
function keptOf(dir: string, name: string): { readonly sent: number; readonly counts: number } {
  const db = openSqlite(join(dir, "agent", "agent.db"), { sync: "full", readonly: true });
  const read = db.prepare<[string], { value: string }>("SELECT value FROM document WHERE key = ?");
  const { value = "{}" } = read.get(keptCountsKey) ?? {};
  db.close();
  const { sent, counts } = JSON.parse(value) as Partial<Kept>;
  const of = (all: Kept["counts"] = []): number =>
    all.reduce((sum, row) => sum + (row.name === name ? row.requests : 0), 0);
  return { sent: of(sent?.counts), counts: of(counts) };
}
