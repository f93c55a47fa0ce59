// `npm test [-- what vitest takes]`: runs the tests, says how far it is and how long it will take.
//
// `npm run test:quick` (`--quick`) runs those that start no program and do not take long (`support/quick-files.ts`).
//
// Under CI=true a file that fails is run once more, alone, and skips need a reason: `support/run-verdict.ts` decides, and the last lines say what it came to.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseCLI } from "vitest/node";
import { quickFiles } from "./support/quick-files.ts";
import { readDurations, shippedDurations } from "./support/run-estimate.ts";
import { tempDir } from "./support/temp-dir.ts";
import {
  filesToRunAgain,
  flakyEntriesOf,
  lineOf,
  verdictOf,
  type ExpectedSkip,
  type FlakyEntry,
  type RunReport,
} from "./support/run-verdict.ts";

/** The project is the one it is started in. */
const root = process.cwd();
const flakyPath = join(root, "test/flaky.md");
const skipsPath = join(root, "test/expected-skips.ts");
const measuredPath = join(root, "var/test-durations.json");
const vitest = join(
  dirname(createRequire(import.meta.url).resolve("vitest/package.json")),
  "vitest.mjs",
);
const reporter = join(import.meta.dirname, "support", "run-report.ts");

type Ran = { readonly exitCode: number; readonly report: RunReport | undefined };

/** One process of vitest; its report is undefined where it wrote none. */
async function run(args: readonly string[]): Promise<Ran> {
  using dir = tempDir();
  const path = join(dir.path, "report.json");
  const child = spawn(
    process.execPath,
    [vitest, "run", ...args, "--reporter=default", `--reporter=${reporter}`],
    { stdio: "inherit", env: { ...process.env, ACCEL_RUN_REPORT: path } },
  );
  // The terminal tells the whole group; whoever tells this process alone means vitest.
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, pass);
  const [code] = (await once(child, "close")) as [number | null];
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, pass);
  const report = existsSync(path)
    ? (JSON.parse(readFileSync(path, "utf8")) as RunReport)
    : undefined;
  if (report !== undefined) keepDurations(report);
  return { exitCode: code ?? 1, report };
}

/** For the next run's estimate. */
function keepDurations({ files }: RunReport): void {
  const kept = existsSync(measuredPath)
    ? (JSON.parse(readFileSync(measuredPath, "utf8")) as Record<string, number>)
    : {};
  for (const { file, tookMs, failures } of files)
    if (tookMs !== undefined && failures.length === 0) kept[file] = Math.round(tookMs / 100) * 100;
  const sorted = Object.entries(kept)
    .filter(([file]) => existsSync(join(root, file)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  mkdirSync(dirname(measuredPath), { recursive: true });
  writeFileSync(measuredPath, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}

function commitHere(): string {
  const told = spawnSync("git", ["rev-parse", "--short=10", "HEAD"], {
    cwd: root,
    encoding: "utf8",
  });
  return told.status === 0 ? told.stdout.trim() : "unknown";
}

const flakyHead = `# Failed by chance

Test files that failed in CI and passed when they were run again, alone. \`.ci/run\` adds the lines; whoever mends the cause takes them away. A file that stands here from an
earlier change and fails again fails the run.

| file | test | commit | first words of the failure |
|---|---|---|---|
`;

function addToFlaky(added: readonly FlakyEntry[]): void {
  const before = existsSync(flakyPath) ? readFileSync(flakyPath, "utf8") : flakyHead;
  writeFileSync(flakyPath, `${before.trimEnd()}\n${added.map(lineOf).join("\n")}\n`);
}

async function expectedSkips(): Promise<readonly ExpectedSkip[]> {
  if (!existsSync(skipsPath)) return [];
  return (
    (await import(pathToFileURL(skipsPath).href)) as { expectedSkips: readonly ExpectedSkip[] }
  ).expectedSkips;
}

async function inCi(args: readonly string[]): Promise<number> {
  const { exitCode, report: first } = await run(args);
  if (first === undefined) {
    process.stdout.write(`\nvitest ended with ${exitCode} and told nothing of its tests.\n`);
    return exitCode === 0 ? 1 : exitCode;
  }
  const { filter, options } = parseCLI(["vitest", "run", ...args]);
  const rest = args.filter((arg) => !filter.includes(arg));
  const [commit, entries] = [
    commitHere(),
    flakyEntriesOf(existsSync(flakyPath) ? readFileSync(flakyPath, "utf8") : ""),
  ];
  const again = new Map<string, RunReport | undefined>();
  for (const file of first.isInterrupted ? [] : filesToRunAgain(first, entries, commit)) {
    process.stdout.write(`\n${file} failed: once more, alone.\n`);
    again.set(file, (await run([file, ...rest])).report);
  }
  const { isPassed, added, lines } = verdictOf({
    first,
    exitCode,
    again,
    entries,
    commit,
    expectedSkips: await expectedSkips(),
    isPart: options.testNamePattern !== undefined,
  });
  if (added.length > 0) addToFlaky(added);
  const closing = [...lines, ...added.map(lineOf)].map((line) => `${line}\n`).join("");
  process.stdout.write(`${closing === "" ? "" : "\n"}${closing}`);
  return isPassed ? 0 : exitCode === 0 ? 1 : exitCode;
}

/** The arguments of vitest: in place of `--quick` the files of the quick run. */
function vitestArgs(given: readonly string[]): readonly string[] {
  if (!given.includes("--quick")) return given;
  const all = globSync("test/**/*.test.ts", { cwd: root }).toSorted();
  // The same files on every machine, however busy it was the last time.
  const files = quickFiles(root, all, readDurations(root, [shippedDurations]));
  process.stdout.write(
    `${files.length} of ${all.length} files: the others start programs, or took more than a second when ${shippedDurations} was written\n`,
  );
  return [...given.filter((arg) => arg !== "--quick"), ...files];
}

const args = vitestArgs(process.argv.slice(2));
const isCi = !["", "0", "false"].includes(process.env["CI"] ?? "");
process.exitCode = isCi ? await inCi(args) : (await run(args)).exitCode;
