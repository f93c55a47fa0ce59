// Mutants from the first to the last: drawn, judged set by set, told. What is specific to this repository is an argument.
//
// Stryker's runner plants its mutants inside the process of the test. Half of what matters here runs in processes and threads that tests start from the sources
// by path, and its coverage does not reach those. A copied tree with one file edited on disk does, and node's own coverage says who runs what.

import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { areaOf } from "./areas.ts";
import { refusedByCompiler } from "./compile.ts";
import { Deep, deepBenches } from "./deep.ts";
import { drawn, reasonsFor, type MutantSet, type Repository } from "./drawn.ts";
import { Judge } from "./judge.ts";
import { keyOf, type Mutant } from "./mutant.ts";
import type { Options } from "./options.ts";
import {
  judgedBefore,
  readResult,
  scoreOf,
  shown,
  survivorsOf,
  writeResult,
  type AreaResult,
  type Judged,
} from "./results.ts";
import { digestOf, TestMap } from "./test-map.ts";
import { trackedFiles, Tree } from "./tree.ts";

type Say = (line: string) => void;

type Bench = {
  readonly options: Options;
  readonly dir: string;
  readonly commit: string;
  readonly tree: Tree;
  readonly judge: Judge;
  readonly deep: Deep;
  readonly reasons: ReadonlyMap<string, string>;
  readonly say: Say;
};

/** What was missed, a line each; none: everything is as it should be. */
export async function runMutants(
  repository: Repository,
  options: Options,
  say: Say,
): Promise<readonly string[]> {
  const { root } = repository;
  const sets = drawn(repository, options);
  if (options.list) {
    for (const { mutants } of sets) for (const mutant of mutants) say(shown(mutant));
    return [];
  }
  const { reasons, idle } = reasonsFor(repository.equivalents, root);
  for (const key of idle) say(`equivalents.ts names what is no longer there: ${key}`);
  const dir = resolve(root, options.dir);
  using tree = new Tree(root, join(dir, `tree-${process.pid}`));
  const tests = trackedFiles(root, "test").filter((path) => path.endsWith(".test.ts"));
  const map = new TestMap(resolve(root, options.map));
  if (!options.recorded) await record(map, tree, tests, say);
  if (options.record) return [];
  // Each named one has a test that kills it, wherever that stands among the others.
  const budgetMs = options.named ? Infinity : options.budgetS * 1_000;
  const judge = new Judge({ tree, map, tests, budgetMs, say });
  const deep = new Deep(tree);
  const bench = { options, dir, commit: commitOf(root), tree, judge, deep, reasons, say };
  const missed: string[] = [];
  for (const set of sets) missed.push(...(await runSet(set, bench)));
  return missed;
}

async function record(map: TestMap, tree: Tree, tests: readonly string[], say: Say): Promise<void> {
  const due = tests.filter((test) => !map.isFresh(tree.root, test));
  for (const [at, test] of due.entries()) {
    const { ms, why } = await map.record(tree.root, test);
    const result = why === undefined ? "" : `, left out, for it is not green: ${why}`;
    say(`recorded ${at + 1} of ${due.length}: ${test}, ${(ms / 1_000).toFixed(1)} s${result}`);
  }
}

async function runSet(set: MutantSet, bench: Bench): Promise<readonly string[]> {
  const { options, dir, commit, tree, judge, reasons, say } = bench;
  const beganMs = performance.now();
  const before = readResult(dir, set.name);
  const digest = (file: string): string => digestOf(tree.text(file));
  const kept = options.resume ? judgedBefore(before, digest) : new Map<string, Judged>();
  const judged: Judged[] = [];
  const keep = (): AreaResult => {
    const mutants = options.survivors ? merged(before, judged) : judged;
    return writeResult(dir, { area: set.name, seed: options.seed, commit, mutants });
  };
  say(`${set.name}: ${set.mutants.length} of ${set.found} mutants`);
  for (const mutant of set.mutants) {
    const { name, operator, lineNo } = mutant;
    const reason = reasons.get(keyOf(name));
    const outcome =
      reason === undefined
        ? (kept.get(keyOf(name))?.outcome ?? (await judge.judge(mutant)))
        : ({ kind: "equivalent", reason } as const);
    const one = { name, operator, lineNo, digest: digest(name.file), outcome };
    const deep = await deepened(mutant, one, bench);
    judged.push({ ...one, ...deep });
    keep();
    if (outcome.kind === "survived" || deep.deep !== undefined)
      say(`${outcome.kind}: ${shown({ ...one, ...deep })}`);
  }
  await refuse(set, judged, tree);
  const result = keep();
  const minutes = ((performance.now() - beganMs) / 60_000).toFixed(1);
  return told(set, result, minutes, say);
}

/** Survivors that the compiler refuses are none. */
async function refuse({ mutants }: MutantSet, judged: Judged[], tree: Tree): Promise<void> {
  const survived = new Set(survivorsOf(judged).map(({ name }) => keyOf(name)));
  const typed = mutants.filter(({ isTyped, name }) => isTyped && survived.has(keyOf(name)));
  for (const { name } of await refusedByCompiler(tree, typed)) {
    const at = judged.findIndex((one) => keyOf(one.name) === keyOf(name));
    const one = judged[at];
    if (one !== undefined) judged[at] = { ...one, outcome: { kind: "refused by the compiler" } };
  }
}

/** Of survivors; of named ones in any case, to show what the benches see. */
async function deepened(
  mutant: Mutant,
  { outcome }: Judged,
  { options, deep }: Bench,
): Promise<Pick<Judged, "deep">> {
  const isAsked = options.deep && (options.named || outcome.kind === "survived");
  const area = areaOf(mutant.name.file) ?? "";
  if (!isAsked || deepBenches(area).length === 0) return {};
  return { deep: await deep.foundBy(area, mutant) };
}

/** What was judged anew in place of what was said of it before. */
function merged(before: AreaResult | undefined, judged: readonly Judged[]): readonly Judged[] {
  const anew = new Map(judged.map((one) => [keyOf(one.name), one]));
  const old = (before?.mutants ?? []).map((one) => anew.get(keyOf(one.name)) ?? one);
  const known = new Set(old.map(({ name }) => keyOf(name)));
  return [...old, ...judged.filter(({ name }) => !known.has(keyOf(name)))];
}

function told(
  { name, shareMin }: MutantSet,
  { mutants }: AreaResult,
  minutes: string,
  say: Say,
): readonly string[] {
  const { killed, survived, equivalent, refused, share } = scoreOf(mutants);
  const score = `${name}: ${(share * 100).toFixed(1)} % killed`;
  say(
    `${score} (${killed} of ${killed + survived}), ${equivalent} equivalent, ${refused} refused by the compiler, ${minutes} minutes`,
  );
  for (const one of survivorsOf(mutants)) say(`  ${shown(one)}`);
  return share >= shareMin ? [] : [`${score}, at least ${shareMin * 100} % wanted`];
}

/** Of the checkout; `-` where there is none. */
function commitOf(root: string): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "-";
  }
}
