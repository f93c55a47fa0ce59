// The weekly report as blocks: which columns hold numbers, which give way where there is little room, and what is left out of long lists.

import { expect, test } from "vitest";
import { weeklyReport, type WeeklyFacts } from "../../../src/central/mail/weekly-report.ts";

const traffic = (domain: string, requests: number) => ({
  domain,
  requests,
  hits: requests / 2,
  blocked: 3,
  bytes: 2_048,
  originRequests: 4,
  originErrors: 1,
});
const deployment = (name16: string, more: object = {}) => ({
  name16,
  tags: ["eu", "edge"],
  version: "1.2.0",
  lastSeen: "2031-05-06T07:08:09.010Z",
  isBehind: false,
  ...more,
});
const facts: WeeklyFacts = {
  customer: "ada",
  from: "2031-04-29",
  until: "2031-05-05",
  traffic: [traffic("a.test", 1_000)],
  before: [traffic("a.test", 800)],
  clears: 2,
  botRequests: 0,
  deployments: [deployment("one")],
};

function tables(of: Partial<WeeklyFacts>) {
  return weeklyReport({ ...facts, ...of }).blocks.filter((block) => block.kind === "table");
}

test("numbers are columns of numbers; on a phone domain, requests and share of the cache stay", () => {
  const [domains, deployments] = tables({});
  expect(domains?.columns).toEqual([
    { label: "Domain" },
    { label: "Requests", isNumber: true },
    { label: "From cache", isNumber: true },
    { label: "Blocked", isNumber: true, isExtra: true },
    { label: "Errors", isNumber: true, isExtra: true },
    { label: "Sent", isNumber: true, isExtra: true },
  ]);
  expect(domains?.rows).toEqual([["a.test", "1,000", "50 %", "3", "1", "2 KiB"]]);
  expect(deployments?.columns).toEqual([
    { label: "Deployment" },
    { label: "Tags", isExtra: true },
    { label: "accel_pack" },
    { label: "Last seen" },
  ]);
});

test("a deployment says what it runs, whether that is old, and when it was seen", () => {
  const deployments = [
    deployment("one"),
    deployment("two", { isBehind: true, tags: [] }),
    deployment("three", { version: null, lastSeen: null }),
  ];
  expect(tables({ deployments })[1]?.rows).toEqual([
    ["one", "eu, edge", "1.2.0", "2031-05-06 07:08 UTC"],
    ["two", "", "1.2.0 (not the newest)", "2031-05-06 07:08 UTC"],
    ["three", "eu, edge", "–", "never"],
  ]);
});

test("of many the first 25 are listed, and how many more there are is told", () => {
  const of = (count: number) => {
    const numbers = Array.from({ length: count }, (_, no) => no);
    return tables({
      traffic: numbers.map((no) => traffic(`d${no}.test`, 10)),
      deployments: numbers.map((no) => deployment(`deployment-${no}`)),
    });
  };
  expect(of(25).map(({ rows, more }) => [rows.length, more])).toEqual([
    [25, undefined],
    [25, undefined],
  ]);
  expect(of(27).map(({ rows, more }) => [rows.length, more])).toEqual([
    [25, "and 2 domains with fewer requests"],
    [25, "and 2 deployments more"],
  ]);
});
