// `npm run bench -- same-answer [CASES [SEED]]`: the same answer in the lane and in the pipeline, a million random cases unless told. It measures nothing: it
// ends with the first difference.

import {
  Ground,
  playScene,
  type SceneTotals,
} from "../test/agent/accelerator/same-answer/compare.ts";

const casesDefault = 1_000_000;
const sayEvery = 50_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const cases = Number(args[0] ?? casesDefault);
  let seed = Number(args[1] ?? 1_000);
  const first = seed;
  const totals: SceneTotals = { cases: 0, quick: 0, byStatus: new Map() };
  await using ground = await Ground.open();
  const began = performance.now();
  for (let next = sayEvery; totals.cases < cases; seed++) {
    await playScene(ground, seed, totals);
    if (totals.cases < next) continue;
    say(`${totals.cases} cases`);
    next += sayEvery;
  }
  const seconds = (performance.now() - began) / 1_000;
  const share = Math.round((100 * totals.quick) / totals.cases);
  say(
    `${totals.cases} cases, seeds ${first} to ${seed - 1}: 0 differences; ${share} % answered in one step; ${Math.round(totals.cases / seconds)} cases/s`,
  );
  const statuses = [...totals.byStatus].sort(([a], [b]) => a - b);
  say(statuses.map(([status, count]) => `${status}: ${count}`).join(", "));
}
