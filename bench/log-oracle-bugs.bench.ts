// The judge of request logs judged: programs with a bug planted, under the kills and the network that the true ones pass. Each has to be caught.

import {
  plant,
  plantedBugs,
  plantedInCommits,
  unlinkBeforeFsync,
  type PlantedBug,
} from "../test/support/log-oracle-bugs.ts";
import { runKillsInCommits } from "../test/support/log-oracle-commits.ts";
import { straceMissing } from "../test/support/log-oracle-disk.ts";
import { runKillInDrop } from "../test/support/log-oracle-full.ts";
import { runLogOracle, type OracleFigures } from "../test/support/log-oracle-run.ts";
import type { SceneOptions } from "../test/support/log-oracle-scene.ts";
import { Figures } from "./support/figures.ts";

const killsMax = 60;
const killsPerChapter = 6;

export async function run(say: (line: string) => void): Promise<void> {
  if (straceMissing) return say("strace is missing, or may not trace: left out");
  const figures = new Figures(say);
  const plantAndRun = async (
    bugs: readonly PlantedBug[],
    runOn: (scene: SceneOptions) => Promise<OracleFigures>,
  ): Promise<void> => {
    for (const bug of bugs) {
      using planted = plant(bug);
      const { unexplained } = await runOn({ [`${bug.program}Main`]: planted.main });
      figures.add(`caught: ${bug.name}`, unexplained.length, "", { least: 1 }, unexplained[0]);
    }
  };
  await plantAndRun(plantedInCommits, runKillsInCommits);
  await plantAndRun([unlinkBeforeFsync], runKillInDrop);
  await plantAndRun(plantedBugs, async (scene) =>
    runLogOracle({
      kills: killsMax,
      killsPerChapter,
      seed: Date.now() % 1_000_000,
      gentle: true,
      stopAtFirst: true,
      scene,
    }),
  );
}
