// The warning that names a domain whose origin fails most of what it is asked.

import { expect, test } from "vitest";
import {
  failingQuietMs,
  failingWarnedMax,
  FailingOrigins,
} from "../../../src/agent/admin/failing-origins.ts";
import { createWorkerMetrics } from "../../../src/agent/accelerator/records/worker-metrics.ts";
import { Health } from "../../../src/base/health.ts";
import { Registry } from "../../../src/base/metrics.ts";

const a = "a.example";

function rig() {
  const registry = new Registry();
  const metrics = createWorkerMetrics(registry);
  let nowMs = 0;
  const now = (): Date => new Date(nowMs);
  const health = new Health(now);
  const logged: string[] = [];
  const log = {
    warn: (_: object, text: string) => void logged.push(text),
    info: (_: object, text: string) => void logged.push(text),
  };
  const watch = new FailingOrigins({ health, log: log as never, now });
  return {
    health,
    logged,
    /** Lets requests come, and looks half a minute later. */
    look: async (
      asked: number,
      unanswered = 0,
      refused = 0,
      domains: readonly string[] = [a],
      kind = "unreachable",
    ) => {
      for (const domain of domains) {
        for (let no = 0; no < asked; no++) metrics.origin.asked(domain);
        metrics.accel_agent_origin_errors_total.inc({ domain, kind }, unanswered);
        metrics.accel_agent_origin_server_errors_total.inc({ domain }, refused);
      }
      nowMs += 30_000;
      watch.take([await registry.getMetricsAsJSON()], domains, nowMs);
      return health.list().map(({ code, severity }) => `${severity} ${code}`);
    },
    wait: (ms: number) => void (nowMs += ms),
    early: (ms: number) => void (nowMs -= ms),
  };
}

test("two looks that are a moment less than a minute apart are a minute", async () => {
  const { look, early } = rig();
  await look(20);
  await look(20, 20);
  await look(20, 20);
  early(40);
  expect(await look(20, 20)).toEqual(["error origin_failing"]);
});

test("a dead origin is told after a minute, once in the log, with how much failed and since when", async () => {
  const { look, health, logged } = rig();
  expect(await look(20)).toEqual([]);
  expect(await look(20, 20)).toEqual([]);
  expect(await look(20, 20)).toEqual([]);
  expect(await look(20, 19, 1)).toEqual(["error origin_failing"]);
  expect(health.list()[0]?.text).toBe(
    "the origin of a.example failed 40 of 40 requests since 1970-01-01T00:01:00.000Z: 39 got no connection, 1 a status of 500 or more",
  );
  await look(20, 20);
  expect(logged).toHaveLength(1);
});

test("what was answered before the origin died is not counted, and makes a dead origin no smaller fault", async () => {
  const { look, health } = rig();
  await look(100);
  await look(186, 93);
  await look(300, 300);
  expect(await look(300, 300)).toEqual(["error origin_failing"]);
  expect(health.list()[0]?.text).toContain("failed 600 of 600 requests since 1970-01-01T00:01:00");
});

test("how bad it is goes by the last minute, and by ten requests where a minute has fewer", async () => {
  for (const [times, each] of [
    [1, 20],
    [5, 2],
  ] as const) {
    const { look } = rig();
    const fail = async (share: number): Promise<readonly string[]> => {
      let last: readonly string[] = [];
      for (let no = 0; no < 2 * times; no++) last = await look(each, each * share);
      return last;
    };
    await look(each);
    for (let no = 0; no < 3; no++) await fail(0.5);
    expect(await fail(0.5)).toEqual(["warning origin_failing"]);
    expect(await fail(1)).toEqual(["error origin_failing"]);
    expect(await fail(0.5)).toEqual(["warning origin_failing"]);
  }
});

test("each kind of failure is told, the most frequent first; those up to the look that found the run are left out", async () => {
  const { look, health } = rig();
  await look(100, 0);
  await look(100, 40, 0, [a], "busy");
  await look(20, 0, 12);
  await look(20, 15, 0, [a], "timeout");
  await look(20, 11, 0, [a], "broken");
  await look(20, 0, 12);
  await look(20, 18, 0, [a], "timeout");
  expect(health.list()[0]?.text).toMatch(
    /failed 56 of 80 requests since \S+Z: 33 got no answer in time, 12 a status of 500 or more, 11 a broken answer$/,
  );
});

test("half of the requests are a warning, fewer are none; one good look ends nothing, two do", async () => {
  const { look, logged } = rig();
  await look(0);
  for (let no = 0; no < 6; no++) expect(await look(20, 9)).toEqual([]);
  await look(20, 10);
  await look(20, 0, 10);
  expect(await look(20, 10)).toEqual(["warning origin_failing"]);
  expect(await look(20, 1)).toEqual(["warning origin_failing"]);
  expect(await look(20, 10)).toEqual(["warning origin_failing"]);
  expect(await look(20)).toEqual(["warning origin_failing"]);
  expect(await look(20)).toEqual([]);
  expect(logged).toEqual([
    expect.stringContaining("failed 20 of 40"),
    "the origin of a.example fails no longer",
  ]);
});

test("few requests take longer to be told, a single failure never; what was asked before the start counts for nothing", async () => {
  const { look } = rig();
  expect(await look(500, 500)).toEqual([]);
  expect(await look(1, 1)).toEqual([]);
  for (let no = 0; no < 9; no++) expect(await look(1, 1)).toEqual([]);
  expect(await look(1, 1)).toEqual(["error origin_failing"]);
  const other = rig();
  await other.look(0);
  await other.look(1, 1);
  for (let no = 0; no < 10; no++) expect(await other.look(0)).toEqual([]);
});

test("ends when nobody asks any more, and when the domain goes", async () => {
  for (const end of ["quiet", "gone"]) {
    const { look, wait, health } = rig();
    await look(0);
    for (let no = 0; no < 4; no++) await look(20, 20);
    expect(health.list()).toHaveLength(1);
    if (end === "gone") expect(await look(0, 0, 0, ["b.example"])).toEqual([]);
    else {
      expect(await look(0)).toHaveLength(1);
      wait(failingQuietMs - 60_001);
      expect(await look(0)).toHaveLength(1);
      expect(await look(0)).toEqual([]);
    }
  }
});

test("is raised for so many domains at most", async () => {
  const { look } = rig();
  const domains = Array.from({ length: failingWarnedMax + 5 }, (_, no) => `${no}.example`);
  await look(0, 0, 0, domains);
  let last: readonly string[] = [];
  for (let no = 0; no < 4; no++) last = await look(10, 10, 0, domains);
  expect(last).toHaveLength(failingWarnedMax);
});
