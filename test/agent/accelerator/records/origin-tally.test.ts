// What is counted of requests to origins is counted for its own domain and its own reason.

import { expect, test } from "vitest";
import { OriginTally } from "../../../../src/agent/accelerator/records/origin-tally.ts";
import { Registry } from "../../../../src/base/metrics.ts";

test("each domain and each reason has a number of its own", async () => {
  const registry = new Registry();
  const tally = new OriginTally(registry);
  for (const domain of ["a.example", "b.example", "b.example"]) tally.asked(domain);
  for (const seconds of [0.5, 1]) tally.took("b.example", seconds);
  tally.took("a.example", 4);
  for (const reason of ["method", "bypass", "method"]) tally.passed("a.example", reason);
  tally.passed("b.example", "bypass");
  const text = await registry.metrics();
  for (const line of [
    'accel_agent_origin_requests_total{domain="a.example"} 1',
    'accel_agent_origin_requests_total{domain="b.example"} 2',
    'accel_agent_origin_duration_seconds_sum{domain="a.example"} 4',
    'accel_agent_origin_duration_seconds_sum{domain="b.example"} 1.5',
    'accel_agent_cache_passed_total{domain="a.example",reason="method"} 2',
    'accel_agent_cache_passed_total{domain="a.example",reason="bypass"} 1',
    'accel_agent_cache_passed_total{domain="b.example",reason="bypass"} 1',
  ])
    expect(text).toContain(`${line}\n`);
});
