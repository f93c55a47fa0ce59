// Power loss at every moment of three activations: an agent is started on every disk that can be left, and serves one whole version, none older than what
// somebody had been given. Then bugs are planted one by one: each must be found.

import { powerBugs } from "../test/support/activation-bugs.ts";
import { judgeAll, resume, search, type Verdict } from "../test/support/activation-judge.ts";
import { record, remains } from "../test/support/activation-power.ts";
import { builtTree } from "../test/support/built-tree.ts";
import { straceMissing } from "../test/support/file-trace.ts";
import { Figures, percentile } from "./support/figures.ts";

const activations = 3;
const sayEvery = 100;
/** Of those that are started on in search of a planted bug, besides the moments after somebody was given a version. */
const searchedMost = 120;
const resumedMost = 10;

export async function run(say: (line: string) => void): Promise<void> {
  if (straceMissing !== undefined) {
    say(`skipped: ${straceMissing}`);
    return;
  }
  const figures = new Figures(say);
  await provePower(say, figures);
  let found = 0;
  for (const bug of powerBugs) {
    const { found: wrong, starts } = await search(bug, searchedMost);
    if (wrong !== undefined) found++;
    say(`planted: ${bug.name}: ${starts} starts, ${wrong ?? "NOT found"}`);
  }
  figures.add("planted bugs found", found, "", { least: powerBugs.length });
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}

async function provePower(say: (line: string) => void, figures: Figures): Promise<void> {
  using tree = builtTree();
  const { main } = tree;
  await using recording = await record({ activations, main });
  const all = remains(recording);
  figures.head(
    `${recording.operations.length} file operations of ${activations} activations, ${all.length} different disks`,
  );
  const verdicts: Verdict[] = [];
  await judgeAll(
    recording,
    all,
    (one) => {
      verdicts.push(one);
      if (one.wrong !== undefined) say(one.wrong);
      if (verdicts.length % sayEvery === 0) say(`${verdicts.length} of ${all.length} started on`);
    },
    { main },
  );
  const took = verdicts.map(({ firstAnswerMs }) => firstAnswerMs);
  const wrong = verdicts.filter((one) => one.wrong !== undefined);
  figures.add("disks on which a start goes wrong", wrong.length, "", { most: 0 });
  const served = new Set(verdicts.map(({ version }) => version));
  figures.add("versions served, none among them", served.size, "", { least: activations + 1 });
  figures.add("first answer after a start, two at a time, p50", percentile(took, 0.5), "ms");
  figures.add("the slowest", Math.max(...took), "ms");
  const step = Math.ceil(all.length / resumedMost);
  const resumed = all.filter((_, no) => no % step === 0);
  for (const one of resumed) await resume(recording, one, main);
  figures.add("came to the newest version by themselves, of them", resumed.length, "");
}
