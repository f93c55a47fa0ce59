// When agents are told that central stops.

import fc from "fast-check";
import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import type { Channel } from "../../../src/central/agents/channel.ts";
import {
  drainedPerSecond,
  drainMostMs,
  drainPlan,
  drainSpreadMs,
  reconnectAfterMs,
  sendOff,
  sendOffSpreadMs,
} from "../../../src/central/agents/drain.ts";

test.each([
  ["the only central, however many", 20_000, 0, 0],
  ["a few agents", 4, 2, 0],
  ["as many as come in a second", 500, 1, 0],
  ["more", 501, 1, 1_002],
  ["many", 5_000, 3, 10_000],
  ["more than a stop has time for", 50_000, 1, 12_000],
])("%s", (_, channels, others, ms) => {
  expect(drainSpreadMs(channels, others)).toBe(ms);
});

test("each is told once, in order, within the time, and no more in a second than is meant while there is time", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 6_000 }),
      fc.integer({ min: 0, max: 3 }),
      fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
      (count, others, chances) => {
        const channels = Array.from({ length: count }, (__, no) => no);
        const spreadMs = drainSpreadMs(count, others);
        const plan = drainPlan(channels, spreadMs, () => chances.next().value ?? 0);
        expect(new Set(plan.map(({ channel }) => channel)).size).toBe(count);
        const times = plan.map(({ ms }) => ms);
        expect(times).toEqual(times.toSorted((a, b) => a - b));
        expect(times.every((ms) => ms >= 0 && ms <= spreadMs)).toBe(true);
        expect(spreadMs).toBeLessThanOrEqual(drainMostMs);
        if (spreadMs > 0 && spreadMs < drainMostMs)
          expect(count / (spreadMs / 1_000)).toBeCloseTo(drainedPerSecond);
      },
    ),
    { numRuns: 20 },
  );
});

test("where many are drained, nobody comes back before a balancer has noticed", () => {
  expect(reconnectAfterMs(0, 0)).toBe(1_000);
  for (const ms of [0, 300, 1_499, 1_500, 2_000, 11_000]) {
    const after = reconnectAfterMs(ms, 12_000);
    expect(ms + after).toBeGreaterThanOrEqual(2_500);
    expect(after).toBeGreaterThanOrEqual(1_000);
    expect(after).toBeLessThanOrEqual(2_500);
  }
});

test("agents are sent off over ten seconds at least, told to come back in a second, and no more of them once it is over", async () => {
  expect([1, 5_000, 20_000].map(sendOffSpreadMs)).toEqual([10_000, 10_000, 40_000]);
  const over = new AbortController();
  const told: unknown[] = [];
  const channel = (no: number): Channel => {
    const socket = {
      send: async (message: unknown) => {
        told.push([no, message]);
        if (no === 2) over.abort();
        return true;
      },
      close: (...given: unknown[]) => told.push([no, ...given]),
      gone: Promise.resolve(),
    };
    return { socket } as unknown as Channel; // What is told needs no more of it.
  };
  const chances = [0.9, 0, 0.001];
  await sendOff(
    { monotonicMs: () => 0, log: silentLog(), random: () => chances.shift() ?? 1 },
    [0, 1, 2].map(channel),
    over.signal,
  );
  await new Promise(setImmediate);
  expect(told).toEqual([
    [1, { type: "drain", reconnect_after_ms: 1_000 }],
    [1, 1001, "other centrals have the store"],
    [2, { type: "drain", reconnect_after_ms: 1_000 }],
    [2, 1001, "other centrals have the store"],
  ]);
});
