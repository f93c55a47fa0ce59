// When the independent poll asks: spread by name, regular, never all together.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { firstPollMs, pollPhaseMs, runPoll } from "../../../src/agent/link/link.ts";

test("the phase belongs to the name and the names are spread over the period", () => {
  const phases = Array.from({ length: 600 }, (_, i) =>
    pollPhaseMs(i.toString(16).padStart(16, "0"), 60_000),
  );
  expect(pollPhaseMs("0123456789abcdef", 60_000)).toBe(pollPhaseMs("0123456789abcdef", 60_000));
  const perTenth = new Map<number, number>();
  for (const phase of phases) {
    const tenth = Math.floor(phase / 6_000);
    perTenth.set(tenth, (perTenth.get(tenth) ?? 0) + 1);
  }
  expect(perTenth.size).toBe(10);
  // 60 expected in each; six standard deviations.
  for (const count of perTenth.values()) expect(Math.abs(count - 60)).toBeLessThan(45);
});

test("the first poll is at the phase, within one period", () => {
  fc.assert(
    fc.property(fc.nat(59_999), fc.nat(4_000_000_000), (phaseMs, nowMs) => {
      const waitMs = firstPollMs(phaseMs, nowMs, 60_000);
      expect(waitMs).toBeGreaterThanOrEqual(0);
      expect(waitMs).toBeLessThan(60_000);
      expect((nowMs + waitMs) % 60_000).toBe(phaseMs);
    }),
  );
});

test("it polls on and on until stopped", async () => {
  const stop = new AbortController();
  let polls = 0;
  await runPoll({
    name16: "0123456789abcdef",
    periodMs: 4,
    now: () => new Date(0),
    random: () => 0.5,
    stop: stop.signal,
    poll: async () => {
      polls += 1;
      if (polls === 5) stop.abort();
    },
  });
  expect(polls).toBe(5);
});
