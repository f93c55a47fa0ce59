// Which mutants are tried: the named ones, or a sample of each area, or those that survived before.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { areaOf } from "./areas.ts";
import type { Equivalent } from "./equivalents.ts";
import { mutantsOf } from "./find-mutants.ts";
import { keyOf, sample, type Mutant } from "./mutant.ts";
import { namedMutant, type Named } from "./named.ts";
import type { Options } from "./options.ts";
import { readResult, survivorsOf } from "./results.ts";
import { trackedFiles } from "./tree.ts";

/** Of all areas in the bench's default. */
const areasInAll = 12;

export type Repository = {
  readonly root: string;
  readonly equivalents: readonly Equivalent[];
  readonly named: readonly Named[];
};

export type MutantSet = {
  /** The area's, `named`, or `only`: of the file of results too. */
  readonly name: string;
  readonly mutants: readonly Mutant[];
  /** Among how many they were drawn. */
  readonly found: number;
  /** 0 to 1: of killed ones. */
  readonly shareMin: number;
};

const shareMin = 0.85;

/** Throws where a named mutant has no place any more. */
export function drawn({ root, named }: Repository, options: Options): readonly MutantSet[] {
  if (options.named) {
    const mutants = named.map((one) =>
      namedMutant(one, readFileSync(join(root, one.file), "utf8")),
    );
    return [{ name: "named", mutants, found: mutants.length, shareMin: 1 }];
  }
  const files = trackedFiles(root, "src").filter(
    (file) => file.endsWith(".ts") && options.only.every((only) => file.startsWith(only)),
  );
  const of = (area?: string): readonly Mutant[] =>
    files
      .filter((file) => areaOf(file) !== undefined && (area === undefined || areaOf(file) === area))
      .flatMap((file) => mutantsOf(file, readFileSync(join(root, file), "utf8")));
  const count = Math.ceil(options.count / areasInAll);
  const draw = (name: string, all: readonly Mutant[], most: number): MutantSet => ({
    name,
    mutants: options.survivors
      ? survivedBefore(resolve(root, options.dir), name, all)
      : sample(all, options.seed, most),
    found: all.length,
    shareMin,
  });
  return options.only.length > 0
    ? [draw("only", of(), options.count)]
    : options.areas.map((area) => draw(area, of(area), count));
}

function survivedBefore(dir: string, name: string, all: readonly Mutant[]): readonly Mutant[] {
  const survivors = survivorsOf(readResult(dir, name)?.mutants ?? []);
  const keys = new Set(survivors.map((one) => keyOf(one.name)));
  return all.filter((one) => keys.has(keyOf(one.name)));
}

/** Reasons by key; and the rows that name no mutant, for the code has changed. */
export function reasonsFor(
  equivalents: readonly Equivalent[],
  root: string,
): { readonly reasons: ReadonlyMap<string, string>; readonly idle: readonly string[] } {
  const reasons = new Map(equivalents.map((row) => [keyOf(row), row.reason]));
  const present = new Set(trackedFiles(root, "src"));
  const files = new Set(equivalents.map(({ file }) => file));
  const known = new Set(
    [...files]
      .filter((file) => present.has(file))
      .flatMap((file) => mutantsOf(file, readFileSync(join(root, file), "utf8")))
      .map(({ name }) => keyOf(name)),
  );
  return { reasons, idle: [...reasons.keys()].filter((key) => !known.has(key)) };
}
