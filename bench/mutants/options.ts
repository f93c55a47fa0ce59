// What `npm run bench -- mutants` is asked for.

import { parseArgs } from "node:util";
import { areas, foldersOf } from "./areas.ts";

export type Options = {
  readonly areas: readonly string[];
  readonly seed: number;
  /** In all areas together. */
  readonly count: number;
  /** Source files that begin so; none: all. */
  readonly only: readonly string[];
  readonly named: boolean;
  readonly resume: boolean;
  readonly survivors: boolean;
  readonly deep: boolean;
  readonly record: boolean;
  readonly recorded: boolean;
  readonly list: boolean;
  readonly budgetS: number;
  readonly dir: string;
  readonly map: string;
  /** Whether all areas are judged, and so the named ones before them. */
  readonly isWhole: boolean;
};

export const help = `Mutants: one edit at a time is planted into a copy of the tree, and the tests that run that place have to notice.

  npm run bench -- mutants [OPTIONS]

  --area NAME       only this area; may be repeated. Areas:
${areas.map((area) => `                    ${area.padEnd(12)} ${foldersOf(area)}`).join("\n")}
  --count N         mutants in all twelve areas together (500)
  --seed N          which of all mutants are the sample (1). A mutant stays in it whatever is edited elsewhere
  --only FILE       only mutants of files whose path begins so; may be repeated. With --count 12000: all mutants of a file
  --named           only the named ones, which stand before all areas too: mutants that once survived and must not again (bench/mutants/named.ts)
  --survivors       only those that survived in the run before, with all tests there are for them now
  --resume          keep the outcomes of an interrupted run where the source file is the same
  --budget S        seconds of tests a mutant, as recorded (60); those that most likely kill it come first. Named ones are tried with all of theirs
  --deep            also let the kill and model benches run against the survivors of cache, link and requests, and with --named against all of theirs
  --record          only record which test runs what, then end. Otherwise test files that are new or changed are recorded first
  --recorded        record nothing: test files of which nothing is known are not asked
  --list            only show the mutants that would be tried
  --dir PATH        where results go, AREA.json each (var/mutants)
  --map PATH        where the record is kept (var/mutants/map): one that another checkout made will do

A survivor is shown with its file and line. Write the test that fails with it, then run --area NAME --survivors.
If no test can tell it from the original, name it with the reason in bench/mutants/equivalents.ts: file, function, line and change as the JSON shows them.
`;

/** A string: what is wrong, or the help. */
export function parseOptions(args: readonly string[]): Options | string {
  let values;
  try {
    ({ values } = parseArgs({ args: [...args], options: known }));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (values.help) return help;
  const unknown = values.area.find((area) => !areas.includes(area));
  if (unknown !== undefined) return `no area ${unknown}; there are: ${areas.join(", ")}`;
  const [seed, count, budgetS] = [values.seed, values.count, values.budget].map(Number);
  for (const [name, value] of Object.entries({ seed, count, budget: budgetS }))
    if (value === undefined || !(value >= 0)) return `--${name} takes a number`;
  return {
    ...values,
    areas: values.area.length > 0 ? values.area : areas,
    isWhole: values.area.length + values.only.length === 0 && !values.survivors,
    seed: seed ?? 0,
    count: count ?? 0,
    budgetS: budgetS ?? 0,
  };
}

const flag = { type: "boolean", default: false } as const;
const known = {
  area: { type: "string", multiple: true, default: [] as string[] },
  only: { type: "string", multiple: true, default: [] as string[] },
  seed: { type: "string", default: "1" },
  count: { type: "string", default: "500" },
  budget: { type: "string", default: "60" },
  dir: { type: "string", default: "var/mutants" },
  map: { type: "string", default: "var/mutants/map" },
  named: flag,
  resume: flag,
  survivors: flag,
  deep: flag,
  record: flag,
  recorded: flag,
  list: flag,
  help: flag,
} as const;
