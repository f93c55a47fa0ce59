// Which writes go on when their visitors have left, and what ends them.

import { expect, test } from "vitest";
import { LateWrites } from "../../../../src/agent/accelerator/origin/late-writes.ts";
import { Stop } from "../../../../src/base/stop.ts";

const gone = new Error("gone");

test("a write outlives its visitor, up to the number that may; one that is over makes room", () => {
  const writes = new LateWrites();
  const all = Array.from({ length: 65 }, () => {
    const visitor = new Stop();
    return { visitor, write: writes.begin(visitor) };
  });
  for (const { visitor } of all) visitor.abort(gone);
  expect(all.map(({ write }) => write.stop.aborted)).toEqual([
    ...all.slice(1).map(() => false),
    true,
  ]);
  all[0]?.write[Symbol.dispose]();
  const next = new Stop();
  using write = writes.begin(next);
  next.abort(gone);
  expect(write.stop.aborted).toBe(false);
});

test("at the end none is waited for, and none later", () => {
  const writes = new LateWrites();
  const [early, late] = [new Stop(), new Stop()];
  using one = writes.begin(early);
  using other = writes.begin(late);
  early.abort(gone);
  writes.end();
  expect([one.stop.aborted, other.stop.aborted]).toEqual([true, false]);
  late.abort(gone);
  expect(other.stop.aborted).toBe(true);
});

test("a visitor who has left before is late at once, and one whose write is over is nobody's any more", () => {
  const writes = new LateWrites();
  const visitor = new Stop();
  visitor.abort(gone);
  using late = writes.begin(visitor);
  expect(late.stop.aborted).toBe(false);
  const stays = new Stop();
  const over = writes.begin(stays);
  over[Symbol.dispose]();
  stays.abort(gone);
  writes.end();
  expect([late.stop.aborted, over.stop.aborted]).toEqual([true, false]);
});
