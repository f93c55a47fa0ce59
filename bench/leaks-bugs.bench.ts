// `LEAK_SEED=1 npm run bench -- leaks-bugs [NAME]`: the oracle of the leak hunt judged: agents with a fault planted, each of which has to give somebody what was made for another
// within the answers of the small run. NAME: only faults whose name contains it.

import { elusiveLeakBugs, leakBugs, plantLeak } from "../test/support/leaks-bugs.ts";
import { huntLeaks } from "../test/support/leaks-run.ts";

const answersMax = 20_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const seed = Number(process.env["LEAK_SEED"] ?? 1);
  const [wanted = ""] = args;
  const missed: string[] = [];
  for (const bug of [...leakBugs, ...elusiveLeakBugs].filter(({ name }) => name.includes(wanted))) {
    using planted = plantLeak(bug);
    const { answers, leaks } = await huntLeaks(
      { answers: answersMax, seed, stopAtFirst: true, main: planted.main },
      () => {},
    );
    const [first] = leaks;
    if (first === undefined && leakBugs.includes(bug)) missed.push(bug.name);
    say(
      `${first === undefined ? "MISSED" : "caught"} after ${answers} answers: ${bug.name}${first === undefined ? "" : ` (${first})`}`,
    );
  }
  if (missed.length > 0) throw new Error(`not caught: ${missed.join("; ")}`);
}
