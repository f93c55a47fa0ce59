// The judge judged: each planted bug is caught, by the same kills and the same network that the sources pass.

import { expect, test } from "vitest";
import { plant, plantedBugs, unlinkBeforeFsync } from "../support/log-oracle-bugs.ts";
import { straceHint, straceMissing } from "../support/log-oracle-disk.ts";
import { runKillInDrop } from "../support/log-oracle-full.ts";
import { runLogOracle } from "../support/log-oracle-run.ts";

const killsMax = 60;
const killsPerChapter = 6;

for (const bug of plantedBugs)
  test.skipIf(straceMissing)(
    `caught: ${bug.name} (${straceHint})`,
    async () => {
      using planted = plant(bug);
      const { unexplained } = await runLogOracle({
        kills: killsMax,
        killsPerChapter,
        seed: Date.now() % 1_000_000,
        gentle: true,
        stopAtFirst: true,
        scene: { [`${bug.program}Main`]: planted.main },
      });
      expect(unexplained).not.toEqual([]);
    },
    300_000,
  );

test.skipIf(straceMissing)(
  `a kill in the middle of a drop is told as the drop (${straceHint})`,
  async () => {
    const { unexplained, told } = await runKillInDrop({});
    expect(unexplained).toEqual([]);
    expect(told.get("dropped_oldest")).toBeGreaterThan(0);
  },
  120_000,
);

test.skipIf(straceMissing)(
  `caught: ${unlinkBeforeFsync.name} (${straceHint})`,
  async () => {
    using planted = plant(unlinkBeforeFsync);
    const { unexplained } = await runKillInDrop({ agentMain: planted.main });
    expect(unexplained).not.toEqual([]);
  },
  120_000,
);
