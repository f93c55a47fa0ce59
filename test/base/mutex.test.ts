// One at a time, in order, whatever the outcome of those before.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Mutex } from "../../src/base/mutex.ts";

test("property: never two at once, in order of arrival, each with its own outcome", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ ticks: fc.nat(5), fails: fc.boolean() }), { maxLength: 12 }),
      async (jobs) => {
        const mutex = new Mutex();
        const order: number[] = [];
        let running = 0;
        const outcomes = await Promise.allSettled(
          jobs.map(async ({ ticks, fails }, i) =>
            mutex.run(async () => {
              expect(++running).toBe(1);
              for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
              order.push(i);
              running--;
              if (fails) throw new Error(String(i));
              return i;
            }),
          ),
        );
        expect(order).toEqual(jobs.map((_, i) => i));
        expect(outcomes.map(({ status }) => status === "rejected")).toEqual(
          jobs.map(({ fails }) => fails),
        );
      },
    ),
  );
});

test("a synchronous throw is a rejection and frees the next", async () => {
  const mutex = new Mutex();
  const failing = mutex.run(() => {
    throw new Error("at once");
  });
  await expect(failing).rejects.toThrow("at once");
  expect(await mutex.run(() => 5)).toBe(5);
});
