// Work in pieces: a rest behind each piece of work, and none in between.

import { expect, test } from "vitest";
import { createPace } from "../../../../src/agent/bots/tables/tabler-thread.ts";

test("rests behind each piece, however often it is called", () => {
  let nowMs = 0;
  const restedAtMs: number[] = [];
  const pace = createPace({
    nowMs: () => nowMs,
    rest: (ms) => {
      restedAtMs.push(nowMs);
      nowMs += ms * 10; // Longer than was asked for: that is no work.
    },
  });
  for (let call = 0; call < 12; call++) {
    nowMs += 0.125;
    pace();
  }
  expect(restedAtMs).toEqual([0.5, 4, 7.5]);
  nowMs += 10;
  pace();
  expect(restedAtMs).toHaveLength(4);
});

test("a thread's own clock: it sleeps and goes on", () => {
  const pace = createPace();
  const began = performance.now();
  let calls = 0;
  for (; performance.now() - began < 20; calls++) pace();
  expect(calls).toBeGreaterThan(20);
});
