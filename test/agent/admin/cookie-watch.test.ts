// The warning that names a domain and the share of its requests that are passed for their cookies.

import { expect, test } from "vitest";
import { CookieWatch, warnedMax } from "../../../src/agent/admin/cookie-watch.ts";
import { askedOriginMetrics } from "../../../src/agent/accelerator/records/origin-tally.ts";
import { requestMetrics } from "../../../src/agent/accelerator/records/request-tally.ts";
import { Health } from "../../../src/base/health.ts";
import { createTallies, Registry } from "../../../src/base/metrics.ts";
import { cookieWindowMs } from "../../../src/core/http/cookie-share.ts";

function rig() {
  const registries = [new Registry(), new Registry()];
  const workers = registries.map((registry) => ({
    asked: createTallies(requestMetrics, registry).accel_agent_requests_total,
    pass: createTallies(askedOriginMetrics, registry).accel_agent_cache_passed_total,
  }));
  const health = new Health(() => new Date(0));
  const watch = new CookieWatch(health);
  let domains: readonly string[] = ["a.example", "b.example"];
  return {
    health,
    serve: (names: readonly string[]) => (domains = names),
    /** In both workers. */
    count: (domain: string, counts: { hits?: number; passed?: number; blocked?: number; other?: number }) => {
      const { hits = 0, passed = 0, blocked = 0, other = 0 } = counts;
      for (const { asked, pass } of workers) {
        asked.cell(domain, "hit", "2xx").value += hits;
        asked.cell(domain, "pass", "2xx").value += passed + other;
        asked.cell(domain, "blocked", "4xx").value += blocked;
        pass.cell(domain, "cookie").value += passed;
        pass.cell(domain, "method").value += other;
      }
    },
    look: async (nowMs: number) => {
      const parts = await Promise.all(registries.map(async (one) => one.getMetricsAsJSON()));
      watch.take(parts, domains, nowMs);
      return health.list().map(({ code, severity, text }) => `${severity} ${code}: ${text}`);
    },
  };
} // prettier-ignore

test("is raised within the window, renewed, and settled by a window without reason", async () => {
  const { count, look } = rig();
  count("a.example", { passed: 5_000 });
  expect(await look(0)).toEqual([]);
  count("a.example", { hits: 100, passed: 110, blocked: 900, other: 10 });
  count("b.example", { hits: 900, passed: 100 });
  const said = (counts: string) =>
    `warning cookies_passed: ${counts} are passed to its origin because of their cookies`;
  expect(await look(30_000)).toEqual([
    said("50 % of the requests to a.example (220 of 440 in the last minutes)"),
  ]);
  count("a.example", { passed: 220 });
  expect(await look(cookieWindowMs)).toEqual([
    said("75 % of the requests to a.example (660 of 880 in the last minutes)"),
  ]);
  count("a.example", { hits: 10_000, passed: 300 });
  expect((await look(cookieWindowMs + 30_000)).length).toBe(1);
  expect(await look(2 * cookieWindowMs)).toEqual([]);
});

test("goes with its domain, and names so many domains at most", async () => {
  const { count, look, serve } = rig();
  const names = Array.from({ length: warnedMax + 5 }, (_, n) => `d${n}.example`);
  serve(names);
  await look(0);
  for (const name of names) count(name, { passed: 200 });
  expect((await look(1)).length).toBe(warnedMax);
  serve(names.slice(1));
  expect((await look(2)).length).toBe(warnedMax);
  serve([]);
  expect(await look(3)).toEqual([]);
});
