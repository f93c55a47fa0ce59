// Which test files `npm run test:quick` runs: those that start no program, and of these the ones that do not take long.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { importsOf, resolvePath } from "./tidy-text.ts";

/** What a file of the quick run may take, in milliseconds. One that nobody has measured yet takes part. */
const longestMs = 1_000;

/** Whether a test file, or what it imports of `test`, starts child processes. Programs under test may: matchers and threads are theirs. */
function startsPrograms(root: string, file: string, seen: Set<string>): boolean {
  if (seen.has(file) || !existsSync(join(root, file))) return false;
  seen.add(file);
  const text = readFileSync(join(root, file), "utf8");
  return importsOf({ path: file, text }).some(({ target }) => {
    if (target === "node:child_process") return true;
    const imported = target.startsWith(".") ? resolvePath(file, target) : "";
    return imported.startsWith("test/") && startsPrograms(root, imported, seen);
  });
}

/** Of the test files at `root`, paths from there, those of the quick run. `tookMs` is what each took once, in milliseconds. */
export function quickFiles(
  root: string,
  files: readonly string[],
  tookMs: Readonly<Record<string, number>>,
): readonly string[] {
  return files.filter(
    (file) => (tookMs[file] ?? 0) <= longestMs && !startsPrograms(root, file, new Set()),
  );
}
