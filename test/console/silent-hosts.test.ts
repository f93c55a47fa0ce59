// Which hosts a preview of a clear names, for they cannot say what it would hit.

import { expect, test } from "vitest";
import { silentHosts } from "../../src/console/silent-hosts.ts";
import type { FleetInstance } from "../../src/wire/customer/fleet.ts";

const startedMs = Date.parse("2026-11-29T08:00:00Z");
const nowMs = startedMs + 3_600_000;
const standing = { heardSinceMs: startedMs, isKnown: true };

const host = (name: string, link: FleetInstance["link"]): FleetInstance => ({
  instance_id: `id of ${name}`,
  host: name,
  link,
  last_seen: new Date(nowMs - 120_000).toISOString(),
  is_log_agent_reporting_data: true,
  log_lag_seconds: 1,
  entries_behind: 0,
  warnings: [],
});
const site = (id: number, ...instances: readonly FleetInstance[]) => ({
  deployment_site_id: id,
  name16: "5f0c9a7be3d21846",
  deployment_tags: "eu",
  domains: ["www.example.com"],
  instances: [...instances],
});
const answers = (id: number, ...names: readonly string[]) => ({
  deployment_site_id: id,
  instances: names.map((name) => ({ instance_id: `id of ${name}`, state: "answered" as const })),
});

const [one, two, three] = [host("one", "channel"), host("two", "none"), host("three", "polling")];
const away = ["a", "b", "c", "d", "e", "f", "g"].map((name) => host(name, "none"));

test.each([
  ["all answered", [answers(1, "one", "two")], [site(1, one, two)], standing, []],
  [
    "one is away",
    [answers(1, "one")],
    [site(1, one, two)],
    standing,
    ["two is away; it clears before it serves again."],
  ],
  [
    "one polls",
    [answers(1, "one")],
    [site(1, one, three)],
    standing,
    ["three cannot say now; it clears all the same."],
  ],
  [
    "two sites",
    [answers(1), answers(2)],
    [site(1, two), site(2, host("far", "none"))],
    standing,
    ["two and far are away; they clear before they serve again."],
  ],
  [
    "many",
    [answers(1)],
    [site(1, ...away)],
    standing,
    ["a, b, c, d, e and 2 other hosts are away; they clear before they serve again."],
  ],
  [
    "a site that the clear does not reach",
    [answers(1, "one")],
    [site(1, one), site(2, two)],
    standing,
    [],
  ],
  [
    "central is not reached",
    [answers(1, "one")],
    [site(1, one, two)],
    { ...standing, isKnown: false },
    ["two cannot say now; it clears all the same."],
  ],
] as const)("%s", (_title, deployments, sites, how, wanted) => {
  expect(silentHosts(deployments, sites, how, nowMs)).toEqual(wanted);
});

test("one that answered too late is named as one that did not", () => {
  const late = {
    deployment_site_id: 1,
    instances: [{ instance_id: "id of one", state: "unreachable" as const }],
  };
  expect(silentHosts([late], [site(1, one)], standing, nowMs)).toEqual([
    "one cannot say now; it clears all the same.",
  ]);
});
