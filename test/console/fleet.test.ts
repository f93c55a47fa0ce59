// How the links of hosts are told: a central that was just restarted, or that is not reached, blames none of them.

import { describe, expect, test } from "vitest";
import {
  attentionOf,
  countsFromMs,
  lastWordsMs,
  linkWords,
  logsWords,
  type LinkStanding,
} from "../../src/console/fleet.ts";
import type { FleetInstance } from "../../src/wire/customer/fleet.ts";

const startedMs = Date.parse("2026-11-29T08:00:00Z");
const seenAt = (seconds: number): string => new Date(startedMs + seconds * 1_000).toISOString();
const standing: LinkStanding = { heardSinceMs: startedMs, isKnown: true };

function host(link: FleetInstance["link"], seen: number): FleetInstance {
  return {
    instance_id: "3f0c2a9d5b7e41c8",
    host: "edge-two",
    link,
    last_seen: seenAt(seen),
    is_log_agent_reporting_data: true,
    log_lag_seconds: 1,
    entries_behind: 0,
    warnings: [],
  };
}

const site = (instance: FleetInstance) => ({
  deployment_site_id: 1,
  name16: "5f0c9a7be3d21846",
  deployment_tags: "eu",
  domains: ["www.example.com"],
  instances: [instance],
});
const textsOf = (instance: FleetInstance, how: LinkStanding, nowS: number): readonly string[] =>
  attentionOf({ sites: [site(instance)] }, how, startedMs + nowS * 1_000).map(({ text }) => text);

const away = ["edge-two is away, seen"];

test("after a loss the last words of central count for nothing; after it is back each answer counts", () => {
  expect(countsFromMs(true, 1_000)).toBe(1_000 + lastWordsMs);
  expect(countsFromMs(false, 1_000)).toBe(1_000);
});

describe("a host without a link", () => {
  test.each([
    ["that was seen before central started, is coming back", standing, -1, 59, []],
    ["is away after a minute", standing, -1, 60, away],
    ["that just said hello has its link in a moment", standing, 1, 10, []],
    ["that came back and went again is away", standing, 1, 11, ["edge-two is away"]],
    [
      "is away where central does not say when it started",
      { ...standing, heardSinceMs: undefined },
      -55,
      5,
      away,
    ],
    ["is away for a browser whose clock is behind", standing, -71, -10, away],
    ["is not judged while central is not reached", { ...standing, isKnown: false }, 0, 3_600, []],
  ] as const)("%s", (_title, how, seen, nowS, wanted) => {
    const found = textsOf(host("none", seen), how, nowS);
    expect(found).toHaveLength(wanted.length);
    for (const [no, text] of wanted.entries()) expect(found[no]).toContain(text);
  });
});

test.each([
  [host("channel", -1), standing, { tone: "good", text: "connected" }],
  [host("polling", -1), standing, { tone: "good", text: "polling" }],
  [host("none", -1), standing, { tone: "plain", text: "not heard of since central started" }],
  [host("none", 1), standing, { tone: "plain", text: "connecting" }],
  [host("channel", 0), { ...standing, isKnown: false }, { tone: "plain", text: "not known" }],
  [host("none", 0), { ...standing, isKnown: false }, { tone: "plain", text: "not known" }],
])("links in words", (instance, how, words) => {
  expect(linkWords(instance, how, startedMs + 10_000)).toEqual(words);
});

test.each([
  [null, "never"],
  [0, "now"],
  [14, "now"],
  [15, "15 s ago"],
  [180, "3 min ago"],
])("logs that came %s seconds ago", (lag, text) => {
  expect(logsWords({ log_lag_seconds: lag })).toBe(text);
});
