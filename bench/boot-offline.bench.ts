// Starts without central after each of what a host may have been through, with 10,000 files and 1,000 certificates: the first file within 2 s.

import { bootAfterScenes } from "../test/support/boot-scenes.ts";
import { builtTree } from "../test/support/built-tree.ts";
import { Figures } from "./support/figures.ts";

const files = 10_000;
const certificates = 1_000;

export async function run(say: (line: string) => void): Promise<void> {
  using tree = builtTree();
  const figures = new Figures(say);
  figures.head(`${files} files`);
  await bootAfterScenes({ files, certificates, main: tree.main }, (boot) => {
    const { scene, firstAnswerMs, wrong, span, expected } = boot;
    figures.add(`after ${scene}: the first file`, firstAnswerMs, "ms", { most: 2_000 });
    figures.add("files and certificates that are wrong", wrong.length, "", { most: 0 });
    figures.add("the version in force", span?.from === span?.to ? (span?.from ?? 0) : 0, "", {
      least: expected,
    });
    for (const one of wrong.slice(0, 10)) say(one);
  });
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}
