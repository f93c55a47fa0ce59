// A copy of the tree in which mutants are planted: the checkout is never touched, and the programs, threads and processes that tests start from
// their sources are mutated as well.

import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { apply, type Mutant } from "./mutant.ts";

/** What tests need that git does not hold. */
const linked = ["node_modules", "var/cache-tests"];

export class Tree implements Disposable {
  readonly root: string;
  readonly #originals = new Map<string, string>();
  readonly #removeAtExit = (): void => this.#remove();

  /** `from`: a git checkout; what git ignores is left out. */
  constructor(from: string, to: string) {
    this.root = to;
    rmSync(to, { recursive: true, force: true });
    for (const path of trackedFiles(from)) {
      mkdirSync(dirname(join(to, path)), { recursive: true });
      cpSync(join(from, path), join(to, path));
    }
    for (const path of linked)
      if (existsSync(join(from, path))) {
        mkdirSync(dirname(join(to, path)), { recursive: true });
        symlinkSync(join(from, path), join(to, path));
      }
    process.once("exit", this.#removeAtExit);
  }

  text(file: string): string {
    return this.#originals.get(file) ?? readFileSync(join(this.root, file), "utf8");
  }

  /** Until what it returns is disposed of. Their edits must not overlap. */
  plant(mutants: readonly Mutant[]): Disposable {
    using stack = new DisposableStack();
    // From the end of a file to its beginning: places stay where they are.
    for (const { name, edit } of mutants.toSorted((a, b) => b.edit.start - a.edit.start)) {
      const path = join(this.root, name.file);
      const before = readFileSync(path, "utf8");
      this.#originals.set(name.file, this.text(name.file));
      writeFileSync(path, apply(before, edit));
      stack.defer(() => this.#restore(name.file));
    }
    return stack.move();
  }

  #restore(file: string): void {
    writeFileSync(join(this.root, file), this.text(file));
    this.#originals.delete(file);
  }

  #remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  [Symbol.dispose](): void {
    process.removeListener("exit", this.#removeAtExit);
    this.#remove();
  }
}

/** What git tracks or would track, and is there. */
export function trackedFiles(root: string, ...below: readonly string[]): readonly string[] {
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z", ...below], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1_024 * 1_024,
  });
  return listed.split("\0").filter((path) => path !== "" && existsSync(join(root, path)));
}
