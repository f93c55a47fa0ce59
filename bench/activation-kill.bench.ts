// 200 kills (ACTIVATION_KILLS sets another number) at random moments of activations under visitors, then a start without central on what is there.

import { killedSite, runKills } from "../test/support/activation-kill.ts";
import { bootOffline } from "../test/support/boot-offline.ts";
import { builtTree } from "../test/support/built-tree.ts";
import { ReleaseRig } from "../test/support/release-rig.ts";
import { Figures } from "./support/figures.ts";

const kills = Number(process.env["ACTIVATION_KILLS"] ?? 200);
const visitors = 6;
const sayEvery = 10;

export async function run(say: (line: string) => void): Promise<void> {
  using tree = builtTree();
  const { main } = tree;
  await using rig = await ReleaseRig.open({ main });
  await rig.edge.startAgent(main);
  const figures = new Figures(say);
  const { counts, ...run } = await runKills(rig, {
    kills,
    visitors,
    onKill: (so) => {
      const wrong = so.counts.failed.length + so.counts.backward.length + so.stuck.length;
      if (so.kills % sayEvery === 0)
        say(`${so.kills} kills, ${so.counts.answers} answers, ${wrong} wrong`);
    },
  });
  for (const wrong of [...counts.failed, ...counts.backward, ...run.stuck].slice(0, 20)) say(wrong);
  figures.add("kills", run.kills, "", { least: kills });
  figures.add("before the version was seen", run.before, "", { least: 1 });
  figures.add("after it", run.after, "", { least: 1 });
  figures.add("answers", counts.answers, "", { least: kills });
  figures.add("pairs of them", counts.pairs, "", { least: kills });
  figures.add("requests while it was dead", counts.unanswered, "");
  figures.add("errors and mixed answers while it was up", counts.failed.length, "", { most: 0 });
  figures.add("answers that go backward", counts.backward.length, "", { most: 0 });
  figures.add("versions it did not come to by itself", run.stuck.length, "", { most: 0 });
  const { firstAnswerMs, span, wrong } = await bootOffline(rig, killedSite, main);
  figures.add("started without central: the first file", firstAnswerMs, "ms", { most: 2_000 });
  figures.add("files that are wrong then", wrong.length, "", { most: 0 });
  figures.add("versions that they may be of", span === undefined ? 0 : 1, "", { least: 1 });
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}
