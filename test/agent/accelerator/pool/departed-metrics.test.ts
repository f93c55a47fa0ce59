// What workers that are gone had counted stays in the sums; what they were at is nobody's any more.

import { expect, test } from "vitest";
import { foldDeparted } from "../../../../src/agent/accelerator/pool/departed-metrics.ts";
import {
  createMetrics,
  exposeMetrics,
  Registry,
  type MetricsData,
} from "../../../../src/base/metrics.ts";

async function worker(requests: Readonly<Record<string, number>>, tookS: number) {
  const registry = new Registry();
  const metrics = createMetrics(
    {
      accel_agent_asked_total: { kind: "counter", help: "Asked.", labels: ["cache"] },
      accel_agent_open: { kind: "gauge", help: "Open." },
      accel_agent_took_seconds: { kind: "histogram", help: "Took.", buckets: [1, 5] },
    },
    registry,
  );
  for (const [cache, count] of Object.entries(requests))
    metrics.accel_agent_asked_total.inc({ cache }, count);
  metrics.accel_agent_open.set(7);
  metrics.accel_agent_took_seconds.observe(tookS);
  return registry.getMetricsAsJSON();
}

test("counters and histograms are summed by labels, over any number of the dead; gauges go", async () => {
  let departed: MetricsData = [];
  for (const last of [
    await worker({ hit: 3, miss: 1 }, 0.5),
    await worker({ hit: 4 }, 3),
    await worker({ stale: 2 }, 9),
  ])
    departed = foldDeparted([departed, last]);
  const lines = (await exposeMetrics([departed]))
    .split("\n")
    .filter((line) => line.startsWith("accel"));
  expect(lines.toSorted()).toEqual([
    'accel_agent_asked_total{cache="hit"} 7',
    'accel_agent_asked_total{cache="miss"} 1',
    'accel_agent_asked_total{cache="stale"} 2',
    'accel_agent_took_seconds_bucket{le="+Inf"} 3',
    'accel_agent_took_seconds_bucket{le="1"} 1',
    'accel_agent_took_seconds_bucket{le="5"} 2',
    "accel_agent_took_seconds_count 3",
    "accel_agent_took_seconds_sum 12.5",
  ]);
});
