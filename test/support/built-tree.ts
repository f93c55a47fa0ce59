// The program built from the sources as they are at this moment, with bugs planted or none: it starts in half the time, and what is edited meanwhile
// does not change it.

import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { node } from "./process.ts";
import { tempDir } from "./temp-dir.ts";

const root = join(import.meta.dirname, "../..");

export type Patch = {
  /** Below the root of the repository. */
  readonly file: string;
  readonly from: string | RegExp;
  readonly to: string;
};

/** `main`: what `Program` and `Edge` start in place of the sources. */
export type BuiltTree = Disposable & { readonly main: string };

/** Throws when a patch changes nothing: the bug must be planted anew where the code went. */
export function builtTree(patches: readonly Patch[] = []): BuiltTree {
  using stack = new DisposableStack();
  const temp = stack.use(tempDir());
  for (const name of ["src", "package.json", "config", "scripts"])
    cpSync(join(root, name), join(temp.path, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(temp.path, "node_modules"));
  for (const { file, from, to } of patches) {
    const path = join(temp.path, file);
    const before = readFileSync(path, "utf8");
    const after = before.replace(from, to);
    if (after === before) throw new Error(`${file} has no longer ${String(from)}`);
    writeFileSync(path, after);
  }
  const built = spawnSync(node, ["scripts/build.mjs"], { cwd: temp.path, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`${built.stdout}${built.stderr}`);
  const owned = stack.move();
  return { main: join(temp.path, "dist/main.js"), [Symbol.dispose]: () => owned.dispose() };
}
