// The canary: sent at once and each interval, its age known whatever the wall clock does.

import { afterEach, expect, test } from "vitest";
import { canaryOf } from "../../../../src/agent/requests/spool/canary-line.ts";
import { Canary } from "../../../../src/agent/requests/ship/canary.ts";
import { exposeMetrics, Registry } from "../../../../src/base/metrics.ts";
import type { CanaryLine } from "../../../../src/wire/request-log.ts";
import { until } from "../../../support/until.ts";

const open: Canary[] = [];
afterEach(async () => {
  for (const canary of open.splice(0)) await canary[Symbol.asyncDispose]();
});

function rig(intervalMs: number) {
  const sent: CanaryLine[] = [];
  const lane = {
    accept: (line: CanaryLine) => void sent.push(line),
    close: async () => undefined,
  };
  const clock = { wallMs: 1_700_000_000_000, ms: 5_000 };
  const registry = new Registry();
  const canary = new Canary({
    lane,
    intervalMs,
    now: () => new Date(clock.wallMs++),
    monotonicMs: () => clock.ms,
    registry,
  });
  open.push(canary);
  const scrape = async (): Promise<string> => {
    canary.refresh();
    return exposeMetrics([await registry.getMetricsAsJSON()]);
  };
  return { canary, sent, clock, scrape };
}

const atOf = (line: CanaryLine | undefined): number => line?.canary.at ?? -1;

test("age counts from the start until one is committed, then from when that one was sent", async () => {
  const { canary, sent, clock, scrape } = rig(60_000);
  await until("the first", () => sent.length === 1);
  expect(sent).toEqual([{ canary: { at: 1_700_000_000 } }]);
  clock.ms += 30_000;
  expect(canary.facts()).toEqual({ ageS: 30, roundTripS: undefined });
  canary.committed(atOf(sent[0]));
  clock.ms += 12_000;
  clock.wallMs += 7_200_000; // A clock that jumps changes neither.
  expect(canary.facts()).toEqual({ ageS: 42, roundTripS: 30 });
  const text = await scrape();
  expect(text).toContain("accel_agent_log_canary_age_seconds 42");
  expect(text).toContain("accel_agent_log_canary_round_trip_seconds 30");
});

test("an older one, or one of an earlier start, says nothing new", async () => {
  const { canary, sent, clock } = rig(1);
  await until("a few", () => sent.length >= 3);
  clock.ms += 10_000;
  canary.committed(atOf(sent[2]));
  const { ageS } = canary.facts() ?? { ageS: -1 };
  canary.committed(atOf(sent[0]));
  canary.committed(1_600_000_000);
  expect(canary.facts()?.ageS).toBe(ageS);
});

test("none is sent at an interval of 0", async () => {
  const { sent } = rig(60_000);
  const off = rig(0);
  await until("the first", () => sent.length === 1);
  expect(off.sent).toEqual([]);
  expect(off.canary.facts()).toBeUndefined();
});

test("is told from a record and a gap by its line", () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  expect(canaryOf(bytes('{"canary":{"at":1700000000.25}}\n'))).toBe(1_700_000_000.25);
  expect(canaryOf(bytes('{"gap":{"from_seq":1,"to_seq":2,"reason":"crash"}}\n'))).toBeUndefined();
  expect(canaryOf(bytes('{"canary":{"at":-1}}'))).toBeUndefined();
  expect(canaryOf(bytes(""))).toBeUndefined();
});
