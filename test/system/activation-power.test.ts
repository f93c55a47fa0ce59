// Power loss over activations: whatever of the recorded file operations had reached the disk, the agent starts and serves one whole version, none older than
// what visitors had. `npm run bench -- activation-power` starts on every disk that can be left and plants more bugs.

import { expect, test } from "vitest";
import { judgeAll, resume, type Verdict } from "../support/activation-judge.ts";
import { chosen, record, remains } from "../support/activation-power.ts";
import { builtTree } from "../support/built-tree.ts";
import { straceMissing } from "../support/file-trace.ts";

const hint = straceMissing ?? "strace(1)";

test.skipIf(straceMissing !== undefined)(
  `whichever operations of two activations and two certificates reached the disk, the next start is whole (${hint})`,
  async () => {
    using tree = builtTree();
    const { main } = tree;
    await using recording = await record({ activations: 2, main });
    const all = remains(recording);
    expect(all.length).toBeGreaterThan(100);
    const verdicts: Verdict[] = [];
    await judgeAll(recording, chosen(all, 8), (verdict) => verdicts.push(verdict), { main });
    expect(verdicts.flatMap(({ wrong }) => wrong ?? [])).toEqual([]);
    expect(new Set(verdicts.map(({ version }) => version))).toEqual(new Set([0, 1, 2]));

    const [middle] = all.filter(({ promised }) => promised.version === 1).slice(20);
    if (middle === undefined) throw new Error("nothing was recorded between the versions");
    await resume(recording, middle, main);
  },
  600_000,
);
