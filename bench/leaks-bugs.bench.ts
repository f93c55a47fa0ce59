// `LEAK_SEED=1 npm run bench -- leaks-bugs [NAME]`: the oracle of the leak hunt judged: agents with a fault planted, each of which has to give somebody what was made for another
// within the answers of the small run. NAME: only faults whose name contains it. LEAK_SEED=1,2,3 tries each fault once for each seed.

import { leakBugs, plantLeak } from "../test/support/leaks-bugs.ts";
import { huntLeaks } from "../test/support/leaks-run.ts";

const answersMax = 20_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const seeds = (process.env["LEAK_SEED"] ?? "1").split(",").map(Number);
  const [wanted = ""] = args;
  const missed: string[] = [];
  for (const bug of leakBugs.filter(({ name }) => name.includes(wanted))) {
    using planted = plantLeak(bug);
    for (const seed of seeds) {
      const { answers, leaks } = await huntLeaks(
        { answers: answersMax, seed, stopAtFirst: true, main: planted.main },
        () => {},
      );
      const [first] = leaks;
      if (first === undefined) missed.push(`${bug.name} (seed ${seed})`);
      const verdict = first === undefined ? "MISSED" : "caught";
      say(`${verdict} after ${answers} answers: ${bug.name} (seed ${seed}; ${first ?? "no leak"})`);
    }
  }
  if (missed.length > 0) throw new Error(`not caught: ${missed.join("; ")}`);
}
