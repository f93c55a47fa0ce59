// The model check of the cache, a million steps: random interleavings of everything that happens to it against a naive oracle. MODEL_STEPS and
// MODEL_SEED set others.

import { checkSeeds } from "../test/support/cache-model-run.ts";

const stepsWanted = Number(process.env["MODEL_STEPS"] ?? 1_000_000);
const firstSeed = Number(process.env["MODEL_SEED"] ?? 1);
const sayEvery = 100_000;

export async function run(say: (line: string) => void): Promise<void> {
  const began = performance.now();
  let next = sayEvery;
  const { totals, seeds, failure } = await checkSeeds(firstSeed, stepsWanted, ({ steps }) => {
    if (steps < next) return;
    say(`${steps} steps`);
    next += sayEvery;
  });
  const seconds = (performance.now() - began) / 1_000;
  const { steps, served, stale, coded, stored, blocked, failed, missed, quick } = totals;
  say(
    `${steps} steps, seeds ${firstSeed} to ${firstSeed + seeds - 1}: ${failure === undefined ? 0 : 1} violations, ${(steps / seconds).toFixed(0)} steps/s`,
  );
  say(
    `${stored} responses stored, ${blocked} blocked, ${failed} failed; ${served} served (${stale} stale by soft clears, ${coded} coded, ${quick} as the lane does), ${missed} missed`,
  );
  if (failure !== undefined) throw new Error(failure);
}
