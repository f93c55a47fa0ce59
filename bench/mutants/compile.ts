// Which mutants the compiler refuses: all survivors are planted at once, for it takes long, and are parted only where it complains.

import { text as textOf } from "node:stream/consumers";
import { codeOf, startHeld } from "./held-process.ts";
import type { Mutant } from "./mutant.ts";
import type { Tree } from "./tree.ts";

const compileMsMax = 600_000;

export async function refusedByCompiler(
  tree: Tree,
  mutants: readonly Mutant[],
): Promise<ReadonlySet<Mutant>> {
  if (mutants.length === 0) return new Set();
  const [together, others] = apart(mutants);
  const complaints = await compile(tree, together);
  const refused = async (some: readonly Mutant[]) => refusedByCompiler(tree, some);
  if (complaints === undefined) return refused(others);
  if (together.length === 1) return new Set([...together, ...(await refused(others))]);
  const suspects = together.filter(({ name }) => complaints.has(name.file));
  const half = Math.ceil(together.length / 2);
  const parts =
    suspects.length > 0 && suspects.length < together.length
      ? [suspects, together.filter((one) => !suspects.includes(one))]
      : [together.slice(0, half), together.slice(half)];
  const found = new Set<Mutant>();
  for (const part of [...parts, others]) for (const one of await refused(part)) found.add(one);
  return found;
}

/** Those that can be planted at once, and those that one of them overlaps. */
function apart(mutants: readonly Mutant[]): readonly [Mutant[], Mutant[]] {
  const [together, others]: [Mutant[], Mutant[]] = [[], []];
  for (const one of mutants) {
    const overlaps = together.some(
      ({ name, edit }) =>
        name.file === one.name.file && edit.start < one.edit.end && one.edit.start < edit.end,
    );
    (overlaps ? others : together).push(one);
  }
  return [together, others];
}

/** The files it complains of; undefined where it does not. Who takes too long has no say. */
async function compile(
  tree: Tree,
  mutants: readonly Mutant[],
): Promise<ReadonlySet<string> | undefined> {
  using _planted = tree.plant(mutants);
  const args = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.json", "--pretty", "false"];
  using compiler = startHeld(tree.root, args, {}, "pipe");
  const { stdout } = compiler.child;
  const said = stdout === null ? Promise.resolve("") : textOf(stdout);
  const code = await codeOf(compiler, compileMsMax);
  if (code === 0 || code === null) return undefined;
  const files = (await said).matchAll(/^([^\s(]+)\(\d+,\d+\): error /gm);
  return new Set([...files].map((match) => match[1] ?? ""));
}
