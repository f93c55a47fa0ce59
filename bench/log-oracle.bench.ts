// 1,000 kills of agent and central among every other fault, LOG_ORACLE_KILLS sets another number: nothing lost, nothing twice, nothing unexplained.

import { builtTree } from "../test/support/built-tree.ts";
import { showFigures } from "../test/support/log-oracle-judge.ts";
import { runLogOracle } from "../test/support/log-oracle-run.ts";

const kills = Number(process.env["LOG_ORACLE_KILLS"] ?? 1_000);
const seed = Number(process.env["LOG_ORACLE_SEED"] ?? Date.now() % 1_000_000);

export async function run(say: (line: string) => void): Promise<void> {
  using built = builtTree();
  const scene = { agentMain: built.main, centralMain: built.main };
  const beganMs = performance.now();
  say(`seed ${seed}`);
  const figures = await runLogOracle({ kills, killsPerChapter: 50, seed, say, scene });
  const seconds = (performance.now() - beganMs) / 1_000;
  const minutes = (seconds / 60).toFixed(1);
  for (const [name, count] of figures.faults) say(`${String(count).padStart(5)} × ${name}`);
  say(
    `${figures.kills} kills in ${minutes} minutes, ${(seconds / figures.kills).toFixed(2)} s a kill; fresh records within ${Math.round(figures.freshMsMax)} ms; ${figures.balanceSamples} looks at the balance, ${figures.sumsCompared} times its sums beside central's`,
  );
  say(showFigures(figures));
  const { unexplained } = figures;
  if (unexplained.length > 0) throw new Error(unexplained.slice(0, 20).join("\n"));
}
