// The judgement of one mutant: its tests are run against the mutated tree, and what they say is doubted where it could have another cause.

import { choose, deadlineOf } from "./choose.ts";
import type { Mutant } from "./mutant.ts";
import type { TestMap } from "./test-map.ts";
import { runTests, type TestFile, type Verdict } from "./test-run.ts";
import type { Tree } from "./tree.ts";

export type Outcome =
  | { readonly kind: "killed"; readonly by: string; readonly test: string; readonly why: string }
  | { readonly kind: "killed in time"; readonly by: string }
  /** No program: every check refuses it. Judged of survivors, all at once. */
  | { readonly kind: "refused by the compiler" }
  | { readonly kind: "survived"; readonly ran: number; readonly related: number };

export type JudgeOptions = {
  readonly tree: Tree;
  readonly map: TestMap;
  /** All test files that may be asked. */
  readonly tests: readonly string[];
  readonly budgetMs: number;
  readonly say: (line: string) => void;
};

export class Judge {
  readonly #options: JudgeOptions;
  /** By test file: whether it passes where nothing is mutated, in this run. */
  readonly #green = new Map<string, boolean>();
  readonly #killers = new Map<string, Set<string>>();

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  async judge(mutant: Mutant): Promise<Outcome> {
    const { tree, map, tests, budgetMs } = this.#options;
    const { file } = mutant.name;
    const text = tree.text(file);
    const related = map.related(tests, file, text, mutant.edit);
    const killers = this.#killers.get(file) ?? new Set();
    let chosen = choose(file, related, killers, budgetMs).filter(
      ({ file: test }) => this.#green.get(test) !== false,
    );
    const ran = chosen.length;
    while (chosen.length > 0) {
      const verdict = await this.#tryOn(mutant, chosen);
      if (verdict.kind === "green") break;
      // What fails without the mutant as well says nothing about it, nor does whoever came before it: those were green.
      if (await this.#isGreen(verdict.file)) {
        this.#killers.set(file, killers.add(verdict.file));
        return verdict.kind === "hung"
          ? { kind: "killed in time", by: verdict.file }
          : { kind: "killed", by: verdict.file, test: verdict.test, why: verdict.why };
      }
      chosen = chosen.slice(chosen.findIndex(({ file: test }) => test === verdict.file) + 1);
    }
    return { kind: "survived", ran, related: related.length };
  }

  async #tryOn(mutant: Mutant, chosen: readonly TestFile[]): Promise<Verdict> {
    const { tree } = this.#options;
    using _planted = tree.plant([mutant]);
    const { verdict } = await runTests(tree.root, chosen);
    if (verdict.kind !== "hung") return verdict;
    // Perhaps the machine was busy: the same again, with twice the time, and then the rest.
    const at = chosen.findIndex(({ file }) => file === verdict.file);
    const again = chosen
      .slice(Math.max(at, 0))
      .map(({ file, msMax }, i) => ({ file, msMax: i === 0 ? 2 * msMax : msMax }));
    return (await runTests(tree.root, again)).verdict;
  }

  async #isGreen(test: string): Promise<boolean> {
    const known = this.#green.get(test);
    if (known !== undefined) return known;
    const { tree, map, say } = this.#options;
    const msMax = 2 * deadlineOf(map.get(test)?.ms ?? 0);
    const { verdict } = await runTests(tree.root, [{ file: test, msMax }]);
    const isGreen = verdict.kind === "green";
    if (!isGreen) say(`left out, for it is not green without a mutant: ${test}`);
    this.#green.set(test, isGreen);
    return isGreen;
  }
}
