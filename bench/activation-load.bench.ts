// 300 activations in a row (ACTIVATIONS sets another number) between two versions of a site of 10,000 files, all of them different, while visitors read
// pairs of files; then a start without central on what is there. In one run with the time that such a start takes.

import { runLoad, slopeOf, type LoadSample } from "../test/support/activation-load.ts";
import { bootOffline } from "../test/support/boot-offline.ts";
import { builtTree } from "../test/support/built-tree.ts";
import { ReleaseRig } from "../test/support/release-rig.ts";
import { VersionedSite } from "../test/support/versioned-site.ts";
import { Figures, percentile } from "./support/figures.ts";
import { growthOf } from "./support/level.ts";
import { unitEnvironment } from "./support/unit-options.ts";

const activations = Number(process.env["ACTIVATIONS"] ?? 300);
const files = 10_000;
const visitors = 8;
const samplesWanted = 60;
/** Heaps grow until they are collected the first times. */
const settledAfter = 1 / 3;

export async function run(say: (line: string) => void): Promise<void> {
  using tree = builtTree();
  const { main } = tree;
  using _ = unitEnvironment("accel-agent");
  await using rig = await ReleaseRig.open({ main, importWithinMs: 1_200_000 });
  await rig.edge.startAgent(main);
  const figures = new Figures(say);
  figures.head(`${activations} activations of ${files} files, ${visitors} visitors`);
  const sampleEach = Math.max(1, Math.floor(activations / samplesWanted));
  const { counts, tookMs, samples } = await runLoad(rig, {
    files,
    activations,
    visitors,
    sampleEach,
    onSample: (sample, { answers, failed, unanswered, backward }) => {
      const wrong = failed.length + unanswered + backward.length;
      if (sample.activation % (sampleEach * 4) === 0)
        say(`${shown(sample)}; ${answers} answers, ${wrong} wrong`);
    },
  });
  for (const wrong of [...counts.failed, ...counts.backward].slice(0, 20)) say(wrong);
  figures.add("answers", counts.answers, "", { least: activations });
  figures.add("pairs of them", counts.pairs, "", { least: activations });
  figures.add("requests that failed, mixed answers", counts.failed.length, "", { most: 0 });
  figures.add("requests that nobody answered", counts.unanswered, "", { most: 0 });
  figures.add("answers that go backward", counts.backward.length, "", { most: 0 });
  figures.add("activation, from PUT to receipt, p50", percentile(tookMs, 0.5), "ms");
  figures.add("p99", percentile(tookMs, 0.99), "ms");
  const settled = samples.slice(Math.floor(samples.length * settledAfter));
  const level = (name: string, of: (one: LoadSample) => number): void => {
    const slope = `${(slopeOf(settled, of) * 100).toFixed(1)} in 100 activations`;
    figures.add(
      `${name}, last third / the one before`,
      growthOf(samples.map(of)),
      "×",
      { most: 1.05 },
      slope,
    );
  };
  level("memory of the agent, MB", ({ agentMb }) => agentMb);
  level("memory of central, MB", ({ centralMb }) => centralMb);
  level("disk of the agent, MB", ({ diskMb }) => diskMb);
  level("files of the agent", (one) => one.files);
  const { firstAnswerMs, span, wrong } = await bootOffline(rig, new VersionedSite(files), main);
  figures.add("started without central: the first file", firstAnswerMs, "ms", { most: 2_000 });
  figures.add("files that are wrong then", wrong.length, "", { most: 0 });
  figures.add("versions that they may be of", span === undefined ? 0 : 1, "", { least: 1 });
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}

const shown = ({ activation, agentMb, centralMb, diskMb, files: count }: LoadSample): string =>
  `after ${activation}: agent ${agentMb.toFixed(0)} MB, central ${centralMb.toFixed(0)} MB, ${count} files, ${diskMb.toFixed(0)} MB`;
