// The model check of the cache: 50,000 seeded steps against a naive oracle, and every guard taken away once to see that it would be missed.
// A failure prints the seed and the shortest walk that still goes wrong. `npm run bench -- model` takes a million steps.

import { expect, test } from "vitest";
import { plantedBugs } from "../../support/cache-model-bugs.ts";
import { checkSeeds, Runs, stepsOf } from "../../support/cache-model-run.ts";
import { pages, patternKinds, patternNo } from "../../support/cache-model-words.ts";
import { openPatternCheck } from "../../../src/base/pattern-check.ts";

/** By their numbers in the model's words: the pattern of both kinds, the scope of all domains. */
const everything = patternKinds / 2 + 18;
const everywhere = 3;
const stepsWanted = 50_000;
/** To find a planted one: far above what the slowest takes. */
const stepsMax = 100_000;

test("every pattern of the model is valid, and each page is hit by some and missed by some", () => {
  using check = openPatternCheck();
  for (let no = 0; no < patternKinds; no += 7)
    expect(check.check(patternNo(no).fts), patternNo(no).fts).toBeUndefined();
  for (const page of pages) {
    const hits = Array.from({ length: 30 }, (_, no) =>
      patternNo(no + patternKinds / 2).means(page, page.mimes[0]),
    );
    expect(new Set(hits).size).toBe(2);
  }
});

test(`${stepsWanted} steps: nothing cleared is served, nothing else goes`, async () => {
  const { totals, failure } = await checkSeeds(1, stepsWanted);
  expect(failure).toBeUndefined();
  expect(totals.served).toBeGreaterThan(500);
  expect(totals.coded).toBeGreaterThan(10);
  expect(totals.quick).toBeGreaterThan(150);
  expect(totals.blocked).toBeGreaterThan(100);
}, 300_000);

test("a copy made while a clear was being matched is not served after the clear was acknowledged", async () => {
  using runs = new Runs();
  const page = 0;
  const failure = await runs.run([
    ["fill", page, 0, 1],
    ["rush", 0, 0, 0],
    ["clear", everything, everywhere, 1],
    ["matchRead", 0, 0, 0],
    ["copy", 0, 0, 0],
    ["matchAnswer", 0, 0, 0],
    ["putBack", 0, 0, 0],
  ]);
  expect(failure).toBeUndefined();
});

test("what agent.db remembers is a second guard: without copies nothing goes wrong without it", async () => {
  using runs = new Runs();
  for (let seed = 1; runs.totals.steps < 10_000; seed++) {
    const steps = stepsOf(seed, { copy: 0, powerLoss: 3, kill: 3, order: 0 });
    expect(await runs.run(steps, { bugs: { trustsAnyCopy: true } })).toBeUndefined();
  }
}, 180_000);

test.each(plantedBugs.map((bug) => [bug.name, bug] as const))(
  "is found out: %s",
  async (_, { bugs = {}, weights = {}, plant }) => {
    using runs = new Runs();
    const undo = plant?.();
    let found: unknown;
    try {
      for (let seed = 1; found === undefined && runs.totals.steps < stepsMax; seed++)
        found = await runs.run(stepsOf(seed, weights), { bugs });
    } finally {
      undo?.();
    }
    expect(found, `within ${stepsMax} steps`).toBeDefined();
  },
  180_000,
);
