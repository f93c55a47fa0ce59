// The mail of a spent day of image variants, from the reports of agents over HTTP to the mail server: central whole, started again in between.

import { expect, test } from "vitest";
import type { Report } from "../../src/wire/channel.ts";
import { call, settingsOf, start } from "../support/central-whole.ts";
import { connectAgent, reportOf } from "../support/fake-agent.ts";
import { startMailServer } from "../support/mail-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const type = "send_email_to_customer_about_domain_images_optimization_blocked_for_today";
/** One day for all reports, also where the test runs over midnight. */
const day = new Date().toISOString().slice(0, 10);
const backend = { requests: 0, errors: 0, latency_buckets: {}, reachable: true };

type Site = { readonly token: string; readonly name16: string; readonly secret16: string };

async function customer(url: string, name: string, domains: readonly string[]): Promise<Site> {
  const user = { username: name, email: `${name}@example.com` };
  const token = String((await call(url, "POST", "/trial/", undefined, user))["token"]);
  const site = await call(url, "POST", "/deployment-site/", token, { tags: "" });
  for (const domain of domains)
    await call(url, "POST", "/domain/", token, { name: domain, deployment_site_id: site["id"] });
  return { token, name16: String(site["name16"]), secret16: String(site["secret16"]) };
}

/** Reports as a host does that has no channel. */
async function report(
  agents: string,
  { name16, secret16 }: Site,
  host: string,
  blocked: Readonly<Record<string, number>>,
): Promise<void> {
  const agent = await connectAgent(agents, name16, secret16);
  const since = new Date().toISOString();
  const domains = Object.entries(blocked).map(([domain, count]) => {
    const counted = { made: 5, blocked: count };
    const variants = { ...counted, today: { ...counted, since, day } };
    return { domain, backend, unreviewed_bots: [], variants };
  });
  const body: Report = { ...reportOf(host, 0), domains };
  const init = { method: "POST", headers: { "content-type": "application/json" } };
  const answer = await agent.call("/reports", { ...init, body: JSON.stringify(body) });
  expect(answer.status, await answer.text()).toBe(204);
}

test("one mail a domain and day arrives over SMTP, whatever hosts and restarts there are", async () => {
  using dir = tempDir();
  await using mails = await startMailServer();
  const server = `mail:\n  server: smtp://127.0.0.1:${mails.port}\n  starttls: never\n  from: Accel <accel@c.example>\n`;
  const settings = settingsOf(dir.path, server);
  let ada: Site;
  {
    await using central = await start(settings);
    ada = await customer(central.url, "ada", ["www.ada.example", "shop.ada.example"]);
    const eve = await customer(central.url, "eve", ["www.eve.example"]);
    const subscription = { notification_type: type, email: "ops@ada.example" };
    await call(central.url, "POST", "/notifications/email/subscribe/", ada.token, subscription);
    await report(central.agents, ada, "host-one", { "www.ada.example": 3, "shop.ada.example": 0 });
    await report(central.agents, ada, "host-two", { "www.ada.example": 4 });
    await report(central.agents, eve, "host-one", { "www.eve.example": 9 });
  }
  {
    // Central looks for events when it starts.
    await using central = await start(settings);
    await mails.waitFor(1);
    await report(central.agents, ada, "host-one", { "www.ada.example": 8 });
    await report(central.agents, ada, "host-two", { "shop.ada.example": 1 });
  }
  {
    await using central = await start(settings);
    await mails.waitFor(2);
    const images = await call(central.url, "GET", "/analytics/www.ada.example/images/", ada.token);
    // Both hosts began anew before each of their reports.
    expect(images["days"]).toMatchObject([{ day, made: 15, held_back: 15 }]);
  }
  expect(mails.received.map(({ to }) => to)).toEqual([["ops@ada.example"], ["ops@ada.example"]]);
  const [first, second] = mails.received.map(({ mail }) => mail);
  expect(first?.subject).toMatch(/^ada: image optimization (?:is|was) held back /);
  expect(first?.text).toMatch(/www\.ada\.example +\d{4}-\d{2}-\d{2} +10 +7\r?\n/);
  expect(first?.text).not.toContain("shop.ada.example");
  expect(first?.html).toContain("images.variants_per_day_max");
  expect(second?.text).toMatch(/shop\.ada\.example +\d{4}-\d{2}-\d{2} +\d+ +1\r?\n/);
  expect(second?.text).not.toContain("www.ada.example");
});
