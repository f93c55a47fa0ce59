// Bounded parallelism: limits hold, the first failure stops the rest and waits for it.

import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { inParallel, Slots } from "../../../src/agent/viewset/parallel.ts";

const never = new AbortController().signal;

test("every item once, never more than the limit at a time", async () => {
  const seen: number[] = [];
  let running = 0;
  let most = 0;
  const items = Array.from({ length: 100 }, (_, i) => i);
  await inParallel(
    items,
    7,
    async (item) => {
      most = Math.max(most, ++running);
      await turn();
      seen.push(item);
      running--;
    },
    never,
  );
  expect(seen.sort((a, b) => a - b)).toEqual(items);
  expect(most).toBe(7);
});

test("the first failure is thrown, when all that had begun have ended", async () => {
  const begun: number[] = [];
  let ended = 0;
  const work = inParallel(
    [1, 2, 3, 4, 5, 6],
    2,
    async (item, signal) => {
      begun.push(item);
      if (item === 2) throw new Error("two");
      await turn();
      expect(signal.aborted).toBe(true);
      await turn();
      ended++;
      throw new Error("later");
    },
    never,
  );
  await expect(work).rejects.toThrow("two");
  expect(begun).toEqual([1, 2]);
  expect(ended).toBe(1);
});

test("an abort from outside stops it", async () => {
  const stop = new AbortController();
  let begun = 0;
  const work = inParallel(
    [1, 2, 3],
    1,
    async () => {
      begun++;
      stop.abort(new Error("enough"));
    },
    stop.signal,
  );
  await expect(work).rejects.toThrow("enough");
  expect(begun).toBe(1);
});

test("slots are shared by all callers; who is told to stop leaves the queue", async () => {
  const slots = new Slots(1);
  const first = Promise.withResolvers<void>();
  const order: string[] = [];
  const holds = slots.run(async () => first.promise, never);
  const stop = new AbortController();
  const leaves = slots.run(async () => order.push("left"), stop.signal);
  const stays = slots.run(async () => order.push("stayed"), never);
  stop.abort(new Error("gone"));
  await expect(leaves).rejects.toThrow("gone");
  expect(order).toEqual([]);
  first.resolve();
  await Promise.all([holds, stays]);
  await slots.run(async () => order.push("next"), never);
  expect(order).toEqual(["stayed", "next"]);
});
