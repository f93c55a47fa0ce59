// `npm run bench -- against COMMIT NAME [ROUNDS]`: a benchmark of this tree and of an earlier commit in turn, and for each of its figures the ratio after to
// before, with its 95 % interval. A change on the way of a request, a clear, a mark or a record is judged by it.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const here = join(import.meta.dirname, "..");
const roundsUnlessTold = 9;
const roundsMax = 30;
/** A benchmark that hangs is ended then, and the comparison with it. */
const benchMsMax = 15 * 60_000;
/** Student's t at 97.5 %, for 1, 2, 3 … degrees of freedom; the last serves beyond. */
const studentT = [
  12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14,
];

/** The figures of one run. The key is the line with `#` in the figure's place and `_` in the place of the line's other figures. */
type Figures = ReadonlyMap<string, number>;
type Pair = { readonly before: Figures; readonly after: Figures };

export async function run(
  say: (line: string) => void,
  [commit, name, rounds = String(roundsUnlessTold)]: readonly string[],
): Promise<void> {
  const count = Number(rounds);
  if (commit === undefined || name === undefined || !(count >= 2 && count <= roundsMax)) {
    say(`usage: npm run bench -- against COMMIT NAME [ROUNDS], 2 to ${roundsMax} rounds`);
    return;
  }
  using old = checkedOut(commit);
  const pairs: Pair[] = [];
  for (let round = 1; round <= count; round++) {
    // They begin by turns: the second run of a pair may find a warmer machine.
    const isOldFirst = round % 2 === 1;
    const first = await once(isOldFirst ? old.directory : here, name);
    const second = await once(isOldFirst ? here : old.directory, name);
    pairs.push(isOldFirst ? { before: first, after: second } : { before: second, after: first });
    say(`round ${round} of ${count} is done`);
  }
  say(`after / before, 95 % interval of ${count} rounds, medians before → after`);
  for (const line of compared(pairs)) say(line);
}

/** Checks the commit out beside this tree, on this tree's packages. */
function checkedOut(commit: string): Disposable & { readonly directory: string } {
  const directory = join(mkdtempSync(join(tmpdir(), "accel-against-")), "tree");
  const git = (...args: readonly string[]): unknown =>
    execFileSync("git", ["-C", here, "worktree", ...args], { stdio: "ignore" });
  git("add", "--detach", directory, commit);
  symlinkSync(join(here, "node_modules"), join(directory, "node_modules"));
  return {
    directory,
    [Symbol.dispose]: () => void git("remove", "--force", directory),
  };
}

/** Runs the benchmark once. Throws, with what it said, if it fails or hangs. */
async function once(directory: string, name: string): Promise<Figures> {
  const child = spawn(process.execPath, ["bench/run.ts", name], {
    cwd: directory,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: benchMsMax,
  });
  const ended = Promise.withResolvers<number | null>();
  child.once("close", ended.resolve);
  const [said, complaints, status] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    ended.promise,
  ]);
  if (status !== 0)
    throw new Error(`${name} in ${directory} ended with ${status}: ${said}${complaints}`);
  return figuresOf(said);
}

/** Reads every number that stands by itself: "p50" and "http2" are words. */
function figuresOf(said: string): Figures {
  const figures = new Map<string, number>();
  const seen = new Map<string, number>();
  const number = /(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?!\w)/g;
  for (const line of said.split("\n")) {
    const words = line
      .trim()
      .replace(/\s*\b(?:ok|MISSED)\b/, "")
      .replace(/\s+/g, " ");
    for (const { 0: digits, index } of words.matchAll(number)) {
      const rest = words.slice(index + digits.length).replace(number, "_");
      const key = `${words.slice(0, index).replace(number, "_")}#${rest}`;
      const before = seen.get(key) ?? 0;
      seen.set(key, before + 1);
      // Two lines may say the same of two things, such as "in processor time".
      figures.set(
        before === 0 ? key : `${key} (${before + 1})`,
        Number(digits.replaceAll(",", "")),
      );
    }
  }
  return figures;
}

function compared(pairs: readonly Pair[]): readonly string[] {
  const keys = [...(pairs[0]?.before.keys() ?? [])];
  return keys.flatMap((key) => {
    const both = pairs.flatMap(({ before, after }) => {
      const [old, now] = [before.get(key), after.get(key)];
      return old === undefined || now === undefined || old <= 0 || now <= 0 ? [] : [[old, now]];
    }) as (readonly [old: number, now: number])[];
    const olds = both.map(([old]) => old);
    const nows = both.map(([, now]) => now);
    // What is equal in every run is a parameter of the benchmark, such as its file's size.
    if (both.length < 2 || new Set([...olds, ...nows]).size === 1) return [];
    const logs = both.map(([old, now]) => Math.log(now / old));
    const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
    const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1);
    const t = studentT[logs.length - 2] ?? studentT.at(-1) ?? Number.NaN;
    const reach = t * Math.sqrt(variance / logs.length);
    const ratio = (log: number): string => Math.exp(log).toFixed(3);
    return [
      `${ratio(mean)} (${ratio(mean - reach)} to ${ratio(mean + reach)})  ${median(olds)} → ${median(nows)}  ${key}`,
    ];
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
