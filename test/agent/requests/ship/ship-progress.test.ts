// Progress is a mark that moved: whatever keeps it from moving, a minute of it is told, and the next commit settles it.

import { expect, test } from "vitest";
import { emptyBalance } from "../../../../src/agent/requests/spool/lane.ts";
import { ShipProgress } from "../../../../src/agent/requests/ship/ship-progress.ts";
import type { LaneFacts, SpoolFacts } from "../../../../src/agent/requests/spool/spool-messages.ts";
import { Health } from "../../../../src/base/health.ts";
import { silentLog } from "../../../../src/base/log.ts";

const laneFacts = (mark: number, durable: number, lane = "000000000000000a/1"): LaneFacts => ({
  lane,
  live: true,
  mark,
  durable,
  inFlight: false,
  bytes: 0,
  waitingMs: 0,
  balance: emptyBalance,
});
const factsOf = (...lanes: readonly LaneFacts[]): SpoolFacts => ({
  balance: emptyBalance,
  bytes: 0,
  isBlocking: false,
  lanesTotal: lanes.length,
  lanes,
});

function rig() {
  const health = new Health(() => new Date(0));
  const clock = { ms: 0 };
  const progress = new ShipProgress({
    health,
    log: silentLog(),
    now: () => new Date(clock.ms),
    monotonicMs: () => clock.ms,
  });
  return { clock, progress, warnings: () => health.list().map(({ code, text }) => [code, text]) };
}

test("a peer that never answers is told after a minute, and settled by a commit", () => {
  const { clock, progress, warnings } = rig();
  progress.check(factsOf(laneFacts(0, 9)));
  expect(progress.state).toBe("moving");
  clock.ms = 59_000;
  progress.check(factsOf(laneFacts(0, 9)));
  expect(warnings()).toEqual([]);
  clock.ms = 60_000;
  progress.check(factsOf(laneFacts(0, 9)));
  expect(warnings()).toEqual([["logs_not_shipped", expect.stringContaining("no answer so far")]]);
  expect(progress.state).toBe("stuck");
  progress.moved();
  expect([warnings(), progress.state]).toEqual([[], "moving"]);
  progress.check(factsOf(laneFacts(5, 9)));
  clock.ms = 119_000;
  progress.check(factsOf(laneFacts(5, 9)));
  expect(progress.state).toBe("moving");
});

test("what central said last is in the warning, and told of each lane while it is here", () => {
  const { clock, progress, warnings } = rig();
  progress.answered("000000000000000a/1", "wait", "503: full");
  progress.answered("000000000000000a/2", "committed");
  progress.check(factsOf(laneFacts(0, 9)));
  expect(progress.state).toBe("retrying");
  progress.moved();
  expect(progress.state).toBe("moving");
  progress.answered("000000000000000a/1", "wait", "503: full");
  clock.ms = 61_000;
  progress.check(factsOf(laneFacts(0, 9)));
  expect(warnings()).toEqual([["logs_not_shipped", expect.stringContaining("503: full")]]);
  expect(progress.answer("000000000000000a/1")).toEqual({
    outcome: "wait",
    why: "503: full",
    at: "1970-01-01T00:00:00.000Z",
  });
  expect(progress.answer("000000000000000a/2")).toBeUndefined();
});

test("no backlog is no warning, however long nothing moves", () => {
  const { clock, progress, warnings } = rig();
  progress.check(factsOf(laneFacts(0, 9)));
  clock.ms = 30_000;
  progress.check(factsOf(laneFacts(9, 9)));
  expect(progress.state).toBe("idle");
  clock.ms = 3_600_000;
  progress.check(factsOf(laneFacts(9, 10)));
  clock.ms += 59_000;
  progress.check(factsOf(laneFacts(9, 12)));
  expect(warnings()).toEqual([]);
});
