// One at a time, in order, whatever the outcome of those before.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { KeyedMutex, Mutex } from "../../src/base/mutex.ts";

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

test("of one key one after the other, however they come and end; of other keys meanwhile", async () => {
  const mutex = new KeyedMutex<string>();
  const trace: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<void>>();
  const begin = (key: string, name: string): Promise<void> => {
    const end = Promise.withResolvers<void>();
    ends.set(name, end);
    return mutex.run(key, async () => {
      trace.push(`+${name}`);
      await end.promise;
      trace.push(`-${name}`);
    });
  };
  const [one, two] = [begin("k", "1"), begin("k", "2")];
  const other = begin("o", "other");
  ends.get("1")?.resolve();
  await one;
  // The second is in it now: whoever comes waits for it, though the first has left.
  const three = begin("k", "3");
  ends.get("other")?.resolve();
  await other;
  expect(trace).toEqual(["+1", "+other", "-1", "+2", "-other"]);
  ends.get("2")?.reject(new Error("it failed"));
  await expect(two).rejects.toThrow("it failed");
  ends.get("3")?.resolve();
  await three;
  expect(trace.slice(5)).toEqual(["+3", "-3"]);
  const again = begin("k", "4");
  ends.get("4")?.resolve();
  await again;
  expect(trace.slice(7)).toEqual(["+4", "-4"]);
});
