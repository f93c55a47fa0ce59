// Main's side of the table of `limits.requests`: how full it is told to be, and that nothing is read of it where no site has a rule.

import { expect, test, vi } from "vitest";
import { RatesSeen } from "../../../../src/agent/accelerator/limits/rates-seen.ts";
import { RateTable } from "../../../../src/agent/accelerator/limits/rate-table.ts";
import { readGauge, Registry } from "../../../../src/base/metrics.ts";
import { paceOf } from "../../../../src/core/limits/request-rate.ts";
import { composeState } from "../../../../src/core/serving/compose-state.ts";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";

const main = "www.example.com";
const sub = "sub.example.com";
const rule = { path: "/**", rate: 1, per_s: 3_600, burst: 1 };

function stateWith(limits: NonNullable<SiteInput["limits"]>, host: string = main) {
  return composeState(1, {
    domains: [
      {
        name: main,
        sub_domains: [{ name: sub, share_views_and_views_dir_with_main_domain: true }],
      },
    ],
    policies: [],
    set: () => undefined,
    viewset: () => undefined,
    local: () => ({
      viewsDir: "/nowhere",
      devlove: { domains: { [main]: {}, [host]: { limits } } },
    }),
  });
}

test("how full the table is is told where a site has a rule; where none has, nothing is read", async () => {
  const registry = new Registry();
  const seen = new RatesSeen(registry, "a test");
  const told = async () => readGauge(registry, "accel_agent_limit_table_used_ratio");
  const table = new RateTable(seen.memory);
  const key = table.keyOf("a rule");
  const visitors = 50_000;
  for (let no = 0; no < visitors; no++)
    table.spend(key, { first: no, second: undefined }, paceOf(rule), () => 1_000);

  seen.refresh(stateWith({ requests: [rule] }));
  const entries = seen.memory.buffer.byteLength / 8;
  expect(((await told()) ?? 0) / (visitors / entries)).toBeCloseTo(1, 1);
  seen.refresh(stateWith({ requests: [rule] }, sub));
  expect(await told()).toBeGreaterThan(0);

  // Their number: to print the calls, each with the whole table, takes minutes.
  using read = vi.spyOn(Atomics, "load");
  seen.refresh(stateWith({ bytes: [{ path: "/**", rate_bytes_s: 2_048 }] }));
  expect(read.mock.calls.length).toBe(0);
  expect(await told()).toBe(0);
  seen.refresh({ domains: [] });
  expect(read.mock.calls.length).toBe(0);
});
