// Many callers' jobs in few runs: what gathers, what is bounded, and that a job that fails is its own caller's trouble.

import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { Together } from "../../src/base/together.ts";

const gather = (): Promise<void> => setImmediate();

test("what is asked for in one turn is one run; what is asked for meanwhile is the next", async () => {
  const runs: (readonly number[])[] = [];
  const gate = Promise.withResolvers<void>();
  const together = new Together<number, string>({
    gather,
    weightMax: 100,
    run: async (items) => {
      runs.push(items);
      if (runs.length === 1) await gate.promise;
      return items.map((item) => `of ${item}`);
    },
  });
  const first = [1, 2, 3].map((item) => together.ask(item));
  await setImmediate();
  await setImmediate();
  const second = [4, 5].map((item) => together.ask(item));
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  expect(runs).toEqual([[1, 2, 3]]); // One run at a time.
  gate.resolve();
  expect(await Promise.all([...first, ...second])).toEqual([
    "of 1",
    "of 2",
    "of 3",
    "of 4",
    "of 5",
  ]);
  expect(runs).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
  expect(await together.ask(6)).toBe("of 6"); // It had come to rest.
});

test("a run takes what its weight allows, and at least one", async () => {
  const runs: (readonly number[])[] = [];
  const together = new Together<number, void>({
    gather,
    weightMax: 10,
    weightOf: (item) => item,
    run: async (items) => {
      runs.push(items);
      return items.map(() => undefined);
    },
  });
  await Promise.all([4, 6, 1, 30, 2].map((item) => together.ask(item)));
  expect(runs).toEqual([[4, 6], [1], [30], [2]]);
});

test("where nothing is said of weights each weighs one", async () => {
  const runs: (readonly number[])[] = [];
  const together = new Together<number, number>({
    gather,
    weightMax: 2,
    run: async (items) => {
      runs.push(items);
      return items;
    },
  });
  await Promise.all([1, 2, 3, 4, 5].map((item) => together.ask(item)));
  expect(runs).toEqual([[1, 2], [3, 4], [5]]);
});

test("one that fails is told; the others of its run have their outcomes", async () => {
  const runs: (readonly number[])[] = [];
  const together = new Together<number, number>({
    gather,
    weightMax: 100,
    run: async (items) => {
      runs.push(items);
      if (items.includes(2)) throw new Error("two is not possible");
      return items.map((item) => item * 10);
    },
  });
  const outcomes = await Promise.allSettled([1, 2, 3].map((item) => together.ask(item)));
  expect(outcomes).toEqual([
    { status: "fulfilled", value: 10 },
    { status: "rejected", reason: new Error("two is not possible") },
    { status: "fulfilled", value: 30 },
  ]);
  expect(runs).toEqual([[1, 2, 3], [1, 2], [1], [2], [3]]);
  await expect(together.ask(2)).rejects.toThrow("two is not possible");
  expect(runs.at(-1)).toEqual([2]); // Alone it is not tried twice.
  expect(await together.ask(7)).toBe(70);
});

test("outcomes that are not as many as the jobs are nobody's", async () => {
  const together = new Together<number, number>({ gather, weightMax: 9, run: async () => [1, 2] });
  await expect(together.ask(1)).rejects.toThrow("2 outcomes of 1 jobs");
});

test("one of a thousand that fails costs some twenty runs more, not a thousand", async () => {
  let runs = 0;
  const together = new Together<number, number>({
    gather,
    weightMax: 1_000,
    run: async (items) => {
      runs++;
      if (items.includes(617)) throw new Error("not possible");
      return items;
    },
  });
  const all = Array.from({ length: 1_000 }, (_, no) => no);
  const outcomes = await Promise.allSettled(all.map((item) => together.ask(item)));
  const failed = outcomes.flatMap(({ status }, no) => (status === "rejected" ? [no] : []));
  expect(failed).toEqual([617]);
  expect(runs).toBeLessThan(25);
});

test("what fails whatever the jobs are fails all of them at once", async () => {
  const runs: number[] = [];
  const away = new Error("away");
  const together = new Together<number, void>({
    gather,
    weightMax: 100,
    failsAll: (error) => error === away,
    run: async (items) => {
      runs.push(items.length);
      throw away;
    },
  });
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((item) => together.ask(item)));
  expect(outcomes.map((outcome) => Object(outcome).reason)).toEqual([away, away, away, away]);
  expect(runs).toEqual([4]);
});
