// Units that are refused are run again, alone and in order; who runs beside others and who runs alone never meet.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  attemptsMax,
  repeated,
  Repeats,
  Turns,
} from "../../../../src/central/store/engine/repeats.ts";

const refused = new Error("refused");
const options = {
  mayRepeat: (error: unknown) => error === refused,
  random: () => 0,
  onRepeat: () => undefined,
};

test("a unit is run until it is not refused, with the number of its attempt", async () => {
  const attempts: number[] = [];
  let repetitions = 0;
  const value = await repeated(
    async (no) => {
      attempts.push(no);
      if (no < 4) throw refused;
      return "done";
    },
    { ...options, onRepeat: () => void repetitions++ },
  );
  expect([value, attempts, repetitions]).toEqual(["done", [1, 2, 3, 4], 3]);
});

test("one that is refused each time throws what its last run threw, and what is no refusal is thrown at once", async () => {
  let runs = 0;
  const always = async (error: Error): Promise<never> => {
    runs++;
    throw error;
  };
  await expect(repeated(async () => always(refused), options)).rejects.toBe(refused);
  expect(runs).toBe(attemptsMax);
  const defect = new TypeError("a defect");
  await expect(repeated(async () => always(defect), options)).rejects.toBe(defect);
  expect(runs).toBe(attemptsMax + 1);
});

test("whatever comes in whatever order: who is alone is alone, who began first begins first, and all end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ isAlone: fc.boolean(), turns: fc.nat(4), fails: fc.boolean() })),
      async (jobs) => {
        const turns = new Turns();
        const running = new Set<number>();
        const begun: number[] = [];
        const met: string[] = [];
        const outcomes = await Promise.allSettled(
          jobs.map(async ({ isAlone, turns: count, fails }, no) =>
            turns.run(isAlone, async () => {
              begun.push(no);
              for (const other of running)
                if (isAlone || jobs[other]?.isAlone === true) met.push(`${no} met ${other}`);
              running.add(no);
              for (let turn = 0; turn < count; turn++) await Promise.resolve();
              running.delete(no);
              if (fails) throw refused;
            }),
          ),
        );
        expect(met).toEqual([]);
        expect(begun).toEqual(jobs.map((_, no) => no));
        expect(outcomes.map(({ status }) => status === "rejected")).toEqual(
          jobs.map(({ fails }) => fails),
        );
      },
    ),
  );
});

test("units that refuse each other: each is run twice at most", async () => {
  // Stands for a database that lets one of those that run at once commit.
  const repeats = new Repeats(options);
  let inside = 0;
  const runs = new Map<number, number>();
  const unit = async (no: number): Promise<number> =>
    repeats.run(async () => {
      runs.set(no, (runs.get(no) ?? 0) + 1);
      const isFirst = inside === 0;
      inside++;
      await Promise.resolve();
      inside--;
      if (!isFirst) throw refused;
      return no;
    });
  const all = Array.from({ length: 50 }, (_, no) => no);
  expect(await Promise.all(all.map(unit))).toEqual(all);
  expect(Math.max(...runs.values())).toBe(2);
});
