// The kill and model benches against a mutated tree: what the tests let through, faults by the dozen may find. Each must pass without a mutant.

import { codeOf, startHeld } from "./held-process.ts";
import type { Mutant } from "./mutant.ts";
import type { Tree } from "./tree.ts";

type DeepBench = { readonly name: string; readonly env: Readonly<Record<string, string>> };

const steps = { MODEL_STEPS: "20000", MODEL_SEED: "1" };
const kills = { CLEAR_KILLS: "6" };
const oracle = { LOG_ORACLE_KILLS: "12", LOG_ORACLE_SEED: "1" };
const activation = { ACTIVATION_KILLS: "6" };

/** By area. */
const benches: Readonly<Record<string, readonly DeepBench[]>> = {
  cache: [
    { name: "model", env: steps },
    { name: "clear-kill", env: kills },
  ],
  link: [
    { name: "clear-kill", env: kills },
    { name: "log-oracle", env: oracle },
    { name: "activation-kill", env: activation },
  ],
  requests: [{ name: "log-oracle", env: oracle }],
};

const benchMsMax = 600_000;

export function deepBenches(area: string): readonly DeepBench[] {
  return benches[area] ?? [];
}

/** Of the benches that pass without a mutant. */
export class Deep {
  readonly #tree: Tree;
  readonly #green = new Map<string, boolean>();

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** Names of those that found it. */
  async foundBy(area: string, mutant: Mutant): Promise<readonly string[]> {
    const found: string[] = [];
    for (const bench of deepBenches(area)) {
      if (!(await this.#isGreen(bench))) continue;
      using _planted = this.#tree.plant([mutant]);
      if (!(await this.#passes(bench))) found.push(bench.name);
    }
    return found;
  }

  async #isGreen(bench: DeepBench): Promise<boolean> {
    const known = this.#green.get(bench.name) ?? (await this.#passes(bench));
    this.#green.set(bench.name, known);
    return known;
  }

  async #passes({ name, env }: DeepBench): Promise<boolean> {
    const { root } = this.#tree;
    using held = startHeld(root, ["bench/run.ts", name], env);
    return (await codeOf(held, benchMsMax)) === 0;
  }
}
