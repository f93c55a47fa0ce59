// Metrics: names are checked when a table is read, threads are summed into one exposition.

import { expect, test } from "vitest";
import {
  createMetrics,
  exposeMetrics,
  Registry,
  type MetricTable,
} from "../../src/base/metrics.ts";

const table = {
  accel_agent_requests_total: { kind: "counter", help: "Requests.", labels: ["cache"] },
  accel_agent_connections: { kind: "gauge", help: "Open connections." },
  accel_agent_wait_seconds: { kind: "histogram", help: "Waiting.", buckets: [0.1, 1] },
} as const satisfies MetricTable;

async function worker(requests: number, connections: number, waits: readonly number[]) {
  const registry = new Registry();
  const metrics = createMetrics(table, registry);
  metrics.accel_agent_requests_total.inc({ cache: "hit" }, requests);
  metrics.accel_agent_connections.set(connections);
  for (const wait of waits) metrics.accel_agent_wait_seconds.observe(wait);
  return registry.getMetricsAsJSON();
}

test.each([
  ["requests_total", "counter"],
  ["accel_requests_total", "counter"],
  ["accel_agent_requests", "counter"],
  ["accel_agent_requests_total", "gauge"],
  ["accel_agent_requests_total", "histogram"],
  ["accel_agent_Requests_total", "counter"],
  ["accel_agent_requests-a_total", "counter"],
] as const)("%s is no name for a %s", (name, kind) => {
  expect(() => createMetrics({ [name]: { kind, help: "x" } }, new Registry())).toThrow(name);
});

test.each([[[1, 0.5]], [[1, 1]], [[0.1, 20, 5, 60]]])("buckets %j are refused", (buckets) => {
  const spec = { kind: "histogram", help: "x", buckets } as const;
  expect(() => createMetrics({ accel_agent_x_seconds: spec }, new Registry())).toThrow("ascend");
});

test("one name twice in a registry is a defect", () => {
  const registry = new Registry();
  createMetrics(table, registry);
  expect(() => createMetrics(table, registry)).toThrow(/already been registered/);
});

test("threads are summed, label by label, bucket by bucket", async () => {
  const text = await exposeMetrics([await worker(3, 10, [0.05, 5]), await worker(4, 20, [0.5])]);
  expect(text.trimEnd().split("\n")).toEqual(
    expect.arrayContaining([
      "# HELP accel_agent_requests_total Requests.",
      "# TYPE accel_agent_requests_total counter",
      'accel_agent_requests_total{cache="hit"} 7',
      "accel_agent_connections 30",
      "# TYPE accel_agent_wait_seconds histogram",
      'accel_agent_wait_seconds_bucket{le="0.1"} 1',
      'accel_agent_wait_seconds_bucket{le="1"} 2',
      'accel_agent_wait_seconds_bucket{le="+Inf"} 3',
      "accel_agent_wait_seconds_sum 5.55",
      "accel_agent_wait_seconds_count 3",
    ]),
  );
  expect(text.match(/^# TYPE /gm)).toHaveLength(3);
});

test("a family can be left out, and no thread gives nothing", async () => {
  const text = await exposeMetrics([await worker(1, 1, [])], (name) => name.includes("requests"));
  expect(text.match(/^# TYPE .*/gm)).toEqual(["# TYPE accel_agent_requests_total counter"]);
  expect((await exposeMetrics([])).trim()).toBe("");
});

test("data that came from another thread is as good", async () => {
  const data = structuredClone(await worker(2, 3, [0.5]));
  expect(await exposeMetrics([data])).toBe(await exposeMetrics([await worker(2, 3, [0.5])]));
});

test("labels are escaped", async () => {
  const registry = new Registry();
  createMetrics(table, registry).accel_agent_requests_total.inc({ cache: 'a"b\\c\nd' });
  expect(await exposeMetrics([await registry.getMetricsAsJSON()])).toContain(
    'accel_agent_requests_total{cache="a\\"b\\\\c\\nd"} 1',
  );
});
