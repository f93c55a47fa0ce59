// A release to come: the sources of this one with further steps of the store, in a directory of its own.

import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const migrations = "src/central/store/engine/migrations.ts";
const end = "} as const satisfies StoreSteps;";

export type CopiedStep = {
  readonly name: string;
  readonly statements: string;
  /** The step that a release must know; unsaid: none. */
  readonly needs?: string;
};

/** Returns its `main.ts`. The directory is empty. */
export function copyRelease(directory: string, steps: readonly CopiedStep[]): string {
  for (const name of ["src", "config", "package.json"])
    cpSync(join(root, name), join(directory, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
  const path = join(directory, migrations);
  const text = readFileSync(path, "utf8");
  if (!text.includes(end)) throw new Error(`${migrations} does not end its table as expected`);
  writeFileSync(path, text.replace(end, `${steps.map(lineOf).join("\n")}\n${end}`));
  return join(directory, "src/main.ts");
}

function lineOf({ name, statements, needs }: CopiedStep): string {
  const step = `expansion(${JSON.stringify(statements)})`;
  const needed = needs === undefined ? step : `{ ...${step}, needs: { step: "${needs}" } }`;
  return `  "${name}": ${needed},`;
}
