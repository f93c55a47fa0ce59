// How long the shipper waits: long while nobody is harmed, short while visitors are refused.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { shipPause } from "../../../../src/agent/requests/ship/ship-plan.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const waits: number[] = [];
vi.mock("../../../../src/base/wait.ts", () => ({
  sleep: async (ms: number, stop: AbortSignal) => {
    waits.push(ms);
    vi.advanceTimersByTime(ms);
    return !stop.aborted;
  },
}));

const pauseOf = async (more: Partial<Parameters<typeof shipPause>[0]>): Promise<number> => {
  const began = performance.now();
  const stop = new AbortController().signal;
  await shipPause({
    failures: 20,
    leastMs: 0,
    random: 0.5,
    isBlocking: () => false,
    stop,
    ...more,
  });
  return performance.now() - began;
};

test("up to a minute after many failures, with jitter", async () => {
  expect(await pauseOf({})).toBe(30_000);
  expect(await pauseOf({ failures: 1 })).toBe(50);
  expect(await pauseOf({ random: 0 })).toBe(0);
});

test("at most five seconds while requests wait for room, and as long as central asks for", async () => {
  expect(await pauseOf({ isBlocking: () => true })).toBe(2_500);
  expect(await pauseOf({ isBlocking: () => true, random: 0.999 })).toBeLessThan(5_000);
  expect(await pauseOf({ isBlocking: () => true, leastMs: 10_000 })).toBe(12_500);
});

test("a wait that began before requests had to wait becomes short", async () => {
  const began = performance.now();
  const isBlocking = (): boolean => performance.now() - began > 7_000;
  expect(await pauseOf({ isBlocking })).toBe(7_500);
});

test("ends with the signal", async () => {
  const stop = AbortSignal.abort();
  waits.length = 0;
  await pauseOf({ stop });
  expect(waits).toEqual([500]);
});
