// The judge of request logs judged: sources with a bug planted, under the kills and the network that the true ones pass. Each has to be caught.

import { plant, plantedBugs, unlinkBeforeFsync } from "../test/support/log-oracle-bugs.ts";
import { straceMissing } from "../test/support/log-oracle-disk.ts";
import { runKillInDrop } from "../test/support/log-oracle-full.ts";
import { runLogOracle } from "../test/support/log-oracle-run.ts";
import { Figures } from "./support/figures.ts";

const killsMax = 60;
const killsPerChapter = 6;

export async function run(say: (line: string) => void): Promise<void> {
  if (straceMissing) return say("strace is missing, or may not trace: left out");
  const figures = new Figures(say);
  const caught = (name: string, unexplained: readonly string[]): void =>
    figures.add(`caught: ${name}`, unexplained.length, "", { least: 1 }, unexplained[0]);
  for (const bug of plantedBugs) {
    using planted = plant(bug);
    const { unexplained } = await runLogOracle({
      kills: killsMax,
      killsPerChapter,
      seed: Date.now() % 1_000_000,
      gentle: true,
      stopAtFirst: true,
      scene: { [`${bug.program}Main`]: planted.main },
    });
    caught(bug.name, unexplained);
  }
  using planted = plant(unlinkBeforeFsync);
  const { unexplained } = await runKillInDrop({ agentMain: planted.main });
  caught(unlinkBeforeFsync.name, unexplained);
}
