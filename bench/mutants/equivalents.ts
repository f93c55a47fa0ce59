// Mutants that no test can tell from the original, each with the reason. A reason is about what the program does, never that a test would be hard.

import type { MutantName } from "./mutant.ts";

export type Equivalent = MutantName & { readonly reason: string };

export const equivalents: readonly Equivalent[] = [
  {
    file: "src/agent/cache/deletions.ts",
    within: "Deletions.step",
    line: "const isFirst = deletion.at === 0 && deletion.ids.length >= manyIds;",
    change: "0 → 1",
    reason:
      "Emptying the text index at once is a short way to where the deletion of its rows leads anyhow: only the time differs.",
  },
  {
    file: "src/agent/cache/worker-cache.ts",
    within: "WorkerCache.open",
    line: "const body = await this.#bodies.read(id, row, id <= (this.#current?.view.suspectTo ?? 0));",
    change: "0 → 1",
    reason:
      "The number stands in for a view that is not there, and without one nothing is servable: the method has returned before.",
  },
];
