// The warning that names a domain whose backend had no place for a request.

import { expect, test } from "vitest";
import { OriginWatch, settledMs, fullWarnedMax } from "../../../src/agent/admin/origin-watch.ts";
import { createWorkerMetrics } from "../../../src/agent/accelerator/records/worker-metrics.ts";
import { Health } from "../../../src/base/health.ts";
import { Registry } from "../../../src/base/metrics.ts";

function rig() {
  const registry = new Registry();
  const { accel_agent_origin_full_total: full } = createWorkerMetrics(registry);
  const health = new Health(() => new Date(0));
  const watch = new OriginWatch(health);
  return {
    full,
    look: async (nowMs: number, domains: readonly string[]) => {
      const metrics = await registry.getMetricsAsJSON();
      watch.take([metrics, metrics], domains, nowMs);
      return health.list().map(({ code, severity, text }) => `${severity} ${code}: ${text}`);
    },
  };
}

const said = (domain: string, count: number): string =>
  `warning origin_full: the backend of ${domain} had no place for ${count} requests since the last look`;

test("is raised for those that were refused, and settled when none was for a while", async () => {
  const { full, look } = rig();
  const domains = ["a.example", "b.example"];
  full.inc({ domain: "b.example", outcome: "waited" }, 9);
  full.inc({ domain: "b.example", outcome: "left" }, 9);
  expect(await look(0, domains)).toEqual([]);
  full.inc({ domain: "a.example", outcome: "refused" }, 2);
  full.inc({ domain: "a.example", outcome: "late" }, 1);
  expect(await look(30_000, domains)).toEqual([said("a.example", 6)]);
  expect(await look(30_000 + settledMs - 1, domains)).toHaveLength(1);
  expect(await look(30_000 + settledMs, domains)).toEqual([]);
  full.inc({ domain: "a.example", outcome: "refused" });
  expect(await look(40_000 + settledMs, domains)).toEqual([said("a.example", 2)]);
  expect(await look(40_001 + settledMs, ["b.example"])).toEqual([]);
});

test("is raised for so many domains at most", async () => {
  const { full, look } = rig();
  const domains = Array.from({ length: fullWarnedMax + 5 }, (_, no) => `${no}.example`);
  for (const domain of domains) full.inc({ domain, outcome: "refused" });
  expect(await look(0, domains)).toHaveLength(fullWarnedMax);
});
