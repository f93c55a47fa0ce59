// Mutants: 500 of them by chance, in every area at least 85 % have to be noticed by the tests that run them. `--help` says what else it does.

import { join } from "node:path";
import { equivalents } from "./mutants/equivalents.ts";
import { named } from "./mutants/named.ts";
import { help, parseOptions } from "./mutants/options.ts";
import { runMutants } from "./mutants/run.ts";

const root = join(import.meta.dirname, "..");

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const options = parseOptions(args);
  if (options === help) return help.split("\n").forEach(say);
  if (typeof options === "string") throw new Error(options);
  const repository = { root, equivalents, named };
  const runs =
    options.isWhole && !options.named && !options.record
      ? [{ ...options, named: true }, options]
      : [options];
  const missed: string[] = [];
  for (const one of runs) missed.push(...(await runMutants(repository, one, say)));
  if (missed.length > 0) throw new Error(missed.join("\n"));
}
