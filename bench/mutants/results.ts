// What came of the mutants of an area, kept as AREA.json after each, so that a run can be interrupted and its survivors be looked at.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Outcome } from "./judge.ts";
import { keyOf, type MutantName } from "./mutant.ts";

export type Judged = {
  readonly name: MutantName;
  readonly operator: string;
  readonly lineNo: number;
  /** Digest of the source file. */
  readonly digest: string;
  readonly outcome: Outcome | { readonly kind: "equivalent"; readonly reason: string };
  /** Which of the kill and model benches found it, where tests did not. */
  readonly deep?: readonly string[];
};

export type Score = {
  readonly killed: number;
  readonly survived: number;
  readonly equivalent: number;
  readonly refused: number;
  /** Of those that are other programs than ours: 0 to 1; 1 where there are none. */
  readonly share: number;
};

export type AreaResult = Score & {
  readonly area: string;
  readonly seed: number;
  readonly commit: string;
  /** `file:line [operator] change`, as printed. */
  readonly survivors: readonly string[];
  readonly mutants: readonly Judged[];
};

export function scoreOf(mutants: readonly Judged[]): Score {
  const count = (pattern: RegExp): number =>
    mutants.filter(({ outcome }) => pattern.test(outcome.kind)).length;
  const [killed, survived] = [count(/^killed/), count(/^survived/)];
  return {
    killed,
    survived,
    equivalent: count(/^equivalent/),
    refused: count(/^refused/),
    share: killed + survived === 0 ? 1 : killed / (killed + survived),
  };
}

export function survivorsOf(mutants: readonly Judged[]): readonly Judged[] {
  return mutants.filter(({ outcome }) => outcome.kind === "survived");
}

type Shown = Pick<Judged, "name" | "lineNo" | "operator" | "deep"> &
  Partial<Pick<Judged, "outcome">>;

export function shown({ name, lineNo, operator, outcome, deep }: Shown): string {
  const more =
    outcome?.kind === "survived" ? ` (${outcome.ran} of ${outcome.related} test files ran)` : "";
  const found = deep === undefined ? "" : ` deep: ${deep.join(", ") || "not found"}`;
  return `${name.file}:${lineNo} [${operator}] in ${name.within}: ${name.change}${more}${found}`;
}

export function readResult(dir: string, area: string): AreaResult | undefined {
  try {
    // Written by `writeResult`.
    return JSON.parse(readFileSync(join(dir, `${area}.json`), "utf8")) as AreaResult;
  } catch {
    return undefined;
  }
}

export function writeResult(
  dir: string,
  { area, seed, commit, mutants }: Pick<AreaResult, "area" | "seed" | "commit" | "mutants">,
): AreaResult {
  mkdirSync(dir, { recursive: true });
  const survivors = survivorsOf(mutants).map(shown);
  const result: AreaResult = { area, seed, commit, ...scoreOf(mutants), survivors, mutants };
  writeFileSync(join(dir, `${area}.json`), `${JSON.stringify(result, undefined, 1)}\n`);
  return result;
}

/** By key, what was judged before of files that are the same. */
export function judgedBefore(
  result: AreaResult | undefined,
  digestOfFile: (file: string) => string | undefined,
): ReadonlyMap<string, Judged> {
  return new Map(
    (result?.mutants ?? [])
      .filter(({ name, digest }) => digestOfFile(name.file) === digest)
      .map((judged) => [keyOf(judged.name), judged]),
  );
}
