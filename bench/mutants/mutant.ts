// A mutant is one edit of one file that a programmer could have made by mistake; its key outlives edits elsewhere in the file.

import { createHash } from "node:crypto";

export type Edit = {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
};

/** What a mutant is known by: no line numbers, which every edit above them moves. */
export type MutantName = {
  readonly file: string;
  /** The function or method around it, `Class.method`; `(module)` where there is none. */
  readonly within: string;
  /** The source line on which the edit begins, without its indentation. */
  readonly line: string;
  /** `a < b → a <= b`. */
  readonly change: string;
  /** Of the same change on the same line of the same function; the first has none. */
  readonly nth?: number;
};

export type Mutant = {
  readonly name: MutantName;
  readonly operator: string;
  readonly edit: Edit;
  readonly lineNo: number;
  /** Whether a survivor is type-checked: a mutant that the compiler refuses is found by every check. */
  readonly isTyped: boolean;
};

export function keyOf({ file, within, line, change, nth = 1 }: MutantName): string {
  return [file, within, line, change, nth].join(" | ");
}

export function apply(text: string, { start, end, replacement }: Edit): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/**
 * `count` of them by chance, at most one a line. Each has its place by seed and key alone, so that an edit elsewhere leaves the others in the sample.
 */
export function sample(mutants: readonly Mutant[], seed: number, count: number): readonly Mutant[] {
  const ranked = mutants
    .map((mutant) => ({ mutant, rank: rankOf(seed, mutant) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0));
  const lines = new Set<string>();
  const chosen: Mutant[] = [];
  for (const { mutant } of ranked) {
    const line = `${mutant.name.file}:${mutant.lineNo}`;
    if (chosen.length === count || lines.has(line)) continue;
    lines.add(line);
    chosen.push(mutant);
  }
  return chosen;
}

function rankOf(seed: number, { name }: Mutant): string {
  return createHash("sha256")
    .update(`${seed} ${keyOf(name)}`)
    .digest("hex");
}
