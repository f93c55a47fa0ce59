// What central is told of this host and of its origins.

import { expect, test } from "vitest";
import { edgeFacts } from "../../../src/agent/admin/edge-facts.ts";
import { OriginReport, trafficOf } from "../../../src/agent/admin/domain-reports.ts";
import { createMetrics, Registry } from "../../../src/base/metrics.ts";

const table = {
  accel_agent_origin_requests_total: { kind: "counter", help: "Requests.", labels: ["domain"] },
  accel_agent_origin_errors_total: { kind: "counter", help: "Errors.", labels: ["domain", "kind"] },
  accel_agent_origin_duration_seconds: {
    kind: "histogram",
    help: "Time.",
    labels: ["domain"],
    buckets: [0.1, 1],
  },
} as const;

function worker() {
  const registry = new Registry();
  return { registry, ...createMetrics(table, registry) };
}

test("threads are summed, each domain for itself, in the order asked for", async () => {
  const [one, two] = [worker(), worker()];
  const domain = "a.example";
  one.accel_agent_origin_requests_total.inc({ domain }, 3);
  two.accel_agent_origin_requests_total.inc({ domain }, 4);
  two.accel_agent_origin_requests_total.inc({ domain: "b.example" }, 1);
  one.accel_agent_origin_errors_total.inc({ domain, kind: "timeout" });
  two.accel_agent_origin_errors_total.inc({ domain, kind: "refused" });
  one.accel_agent_origin_duration_seconds.observe({ domain }, 0.05);
  two.accel_agent_origin_duration_seconds.observe({ domain }, 0.5);
  const parts = await Promise.all(
    [one, two].map(async ({ registry }) => registry.getMetricsAsJSON()),
  );
  expect(new OriginReport().take(parts, ["b.example", domain, "c.example"], new Map())).toEqual([
    {
      domain: "b.example",
      backend: { requests: 1, errors: 0, latency_buckets: {}, reachable: true },
    },
    {
      domain,
      backend: {
        requests: 7,
        errors: 2,
        latency_buckets: { "0.1": 1, "1": 2, "+Inf": 2 },
        reachable: true,
      },
    },
    {
      domain: "c.example",
      backend: { requests: 0, errors: 0, latency_buckets: {}, reachable: true },
    },
  ]);
});

test("unreachable: everything since the last report failed, and there was something", async () => {
  const { registry, ...metrics } = worker();
  const report = new OriginReport();
  const domain = "a.example";
  const isReachable = async (requests: number, errors: number): Promise<boolean | undefined> => {
    metrics.accel_agent_origin_requests_total.inc({ domain }, requests);
    metrics.accel_agent_origin_errors_total.inc({ domain, kind: "x" }, errors);
    const parts = [await registry.getMetricsAsJSON()];
    return report.take(parts, [domain], new Map())[0]?.backend.reachable;
  };
  expect(await isReachable(10, 9)).toBe(true);
  expect(await isReachable(2, 2)).toBe(false);
  expect(await isReachable(0, 0)).toBe(true);
  expect(await isReachable(1, 1)).toBe(false);
  expect(await isReachable(5, 4)).toBe(true);
});

test("what the active checks say goes with it, and nothing where they say nothing", () => {
  const report = new OriginReport();
  const checks = new Map([
    ["a.example", "down"],
    ["b.example", "up"],
  ] as const);
  const told = report.take([], ["a.example", "b.example", "c.example"], checks);
  expect(told.map(({ backend }) => backend.checks)).toEqual(["down", "up", undefined]);
  expect(told.map(({ backend }) => "checks" in backend)).toEqual([true, true, false]);
});

test("the edge says what its settings say", () => {
  const datacenter = {
    datacenter_place: "x",
    country_code: "DE",
    datacenter_provider_company: "y",
  };
  const edge = { server_name: "e", edge_ip_address: "192.0.2.1", at_directory: "/srv", datacenter };
  expect(edgeFacts(undefined)).toBeNull();
  expect(edgeFacts({ server_name: "e" })).toEqual({
    server_name: "e",
    edge_ip_address: "",
    at_directory: "",
    datacenter_place: "",
    country_code: "",
    datacenter_provider_company: "",
    metrics_advertise: null,
  });
  expect(edgeFacts(edge)).toEqual({
    server_name: "e",
    edge_ip_address: "192.0.2.1",
    at_directory: "/srv",
    ...datacenter,
    metrics_advertise: null,
  });
  expect(edgeFacts({ ...edge, metrics_advertise: "192.0.2.1:9464" })?.metrics_advertise).toBe(
    "192.0.2.1:9464",
  );
});

const visitors = {
  accel_agent_requests_total: {
    kind: "counter",
    help: "Requests.",
    labels: ["domain", "cache", "status"],
  },
  accel_agent_blocked_total: { kind: "counter", help: "Blocked.", labels: ["domain", "reason"] },
  accel_agent_bytes_sent_total: { kind: "counter", help: "Bytes.", labels: ["domain"] },
} as const;

test("traffic: all threads together, what was answered from here, what was blocked", async () => {
  const registries = [new Registry(), new Registry()];
  const domain = "a.example";
  for (const registry of registries) {
    const metrics = createMetrics(visitors, registry);
    for (const cache of ["hit", "stale", "miss", "pass", "blocked"])
      metrics.accel_agent_requests_total.inc({ domain, cache, status: "200" }, 2);
    metrics.accel_agent_blocked_total.inc({ domain, reason: "bad" }, 2);
    metrics.accel_agent_bytes_sent_total.inc({ domain }, 100);
  }
  const parts = await Promise.all(registries.map(async (one) => one.getMetricsAsJSON()));
  expect([...trafficOf(parts, [domain, "b.example"])]).toEqual([
    [domain, { requests: 20, hits: 8, blocked: 4, bytes: 200 }],
    ["b.example", { requests: 0, hits: 0, blocked: 0, bytes: 0 }],
  ]);
});
