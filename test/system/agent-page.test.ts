// The agent's own page over a real agent: what its workers counted is in the plots, as it is in the metrics.

import { expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { until } from "../support/until.ts";

/** The sum of a metric over all its series; undefined if it has none. */
function scraped(text: string, name: string): number | undefined {
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"))];
  return values.length === 0
    ? undefined
    : values.reduce((sum, [, value]) => sum + Number(value), 0);
}

/** The plot is an hour wide, in a thousand parts. */
const secondsAPart = 3.6;
const usualSeconds = 15;

/** How much a rate sums up to over its plot: the line is read as a reader sees it, along its axes. A sample may come late on a busy machine. */
function plotted(page: string, name: string): number {
  const figure = page.split("<figure>").find((one) => one.includes(`<h3>${name} `)) ?? "";
  const [, top = "0"] = /data-text="([^"]*)"/.exec(figure) ?? [];
  const [, line = ""] = /class="run"[^>]* d="([^"]*)"/.exec(figure) ?? [];
  let sum = 0;
  for (const run of line.split("M").slice(1)) {
    let before: number | undefined;
    for (const [, x, y] of run.matchAll(/([\d.]+) ([\d.]+)/g)) {
      const seconds = before === undefined ? usualSeconds : (Number(x) - before) * secondsAPart;
      sum += ((100 - Number(y)) / 100) * Number(top) * seconds;
      before = Number(x);
    }
  }
  return sum;
}

test("requests and blocks of all workers are in the plots, as the metrics have them", async () => {
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, "http://127.0.0.1:9", "page");
  await script.enrol();
  await edge.startAgent();
  await edge.api.post("/domain/", { name: domain, deployment_site_id: script.siteId });
  const visit = async (userAgent: string) =>
    edge.visit("/", {
      host: domain,
      userAgent,
      headers: { "x-forwarded-for": "203.0.113.9" },
    });
  await until(
    "the domain is linked",
    async () => (await visit("curl/8.14.1")).status === 403,
    120_000,
  );
  const get = async (path: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${edge.ports.metrics}${path}`)).text();
  const figure = (page: string, name: string): string =>
    new RegExp(`<dt>${name}</dt><dd><b>(.*?)</b>`).exec(page)?.[1] ?? "";
  // The visits until now are in the plots already, or in no rate.
  const base = await until(
    "a quiet sample",
    async () => {
      const now = await get("/");
      return figure(now, "Requests a second") === "0" ? now : undefined;
    },
    240_000,
  );
  const before = await get("/metrics/deployment");
  for (let no = 0; no < 60; no++)
    await visit(no % 3 === 0 ? "curl/8.14.1" : "Mozilla/5.0 Firefox/140.0");
  const after = await get("/metrics/deployment");
  const grown = (name: string): number =>
    (scraped(after, name) ?? 0) - (scraped(before, name) ?? 0);
  expect([grown("accel_agent_requests_total"), grown("accel_agent_blocked_total")]).toEqual([
    60, 20,
  ]);
  const requestsOf = (page: string): number =>
    plotted(page, "Requests a second") - plotted(base, "Requests a second");
  const page = await until(
    "all are in a sample, and central has the records",
    async () => {
      const now = await get("/");
      const isOver = figure(now, "Requests a second") === "0" && requestsOf(now) > 40;
      return isOver && figure(now, "Records waiting") === "0" ? now : undefined;
    },
    240_000,
  );
  // A drawing has its own resolution.
  expect(requestsOf(page) / 60).toBeCloseTo(1, 0.5);
  const blocked = plotted(page, "Blocked a second") - plotted(base, "Blocked a second");
  expect(blocked / 20).toBeCloseTo(1, 0.5);
  const now = await get("/metrics/deployment");
  const lag =
    (scraped(now, "accel_agent_journal_head_seq") ?? 0) -
    (scraped(now, "accel_agent_journal_applied_seq") ?? 0);
  expect(figure(page, "Behind the journal")).toBe(String(lag));
  expect(figure(page, "Hit ratio")).toBe("–");
  expect(figure(page, "Log canary")).toMatch(/ m?s$/);
}, 700_000);
