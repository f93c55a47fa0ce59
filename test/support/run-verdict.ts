// What becomes of a run in CI: which files failed by chance, which fail it, which skips nobody gave a reason for. Pure, but for the reasons' own conditions.
//
// A file that fails is run once more, alone. Passes it then, it failed by chance: the run goes on, and the file stands in `test/flaky.md` until its cause is mended.
// It fails the run when it fails twice, and when it stands there from an earlier change.

/** A test that failed, or the file itself where `test` is "". */
export type Failure = { readonly test: string; readonly words: string };
export type Skip = { readonly test: string; readonly note: string | undefined };
export type FileReport = {
  /** Below the root of the project, with slashes. */
  readonly file: string;
  /** Undefined: never came to its end. */
  readonly tookMs: number | undefined;
  /** Empty where it passed. */
  readonly failures: readonly Failure[];
  readonly skips: readonly Skip[];
};
/** What one process of vitest came to. */
export type RunReport = {
  readonly files: readonly FileReport[];
  /** Errors that belong to no file. */
  readonly strays: readonly string[];
  readonly isInterrupted: boolean;
};

/** A line of `test/flaky.md`. */
export type FlakyEntry = {
  readonly file: string;
  readonly test: string;
  readonly commit: string;
  readonly words: string;
};

/** `holds`: whether that is so on this host; where it is not, the test has to run. */
export type ExpectedSkip = {
  readonly file: string;
  /** How the full names of the tests begin; parts are joined by " > ". */
  readonly test: string;
  readonly reason: string;
  readonly holds: () => boolean;
};

const cellMax = 120;
/** More than so many files at once fail for one reason, which is no chance: they are not run again. */
export const againMax = 10;

const cell = (text: string): string =>
  text.replaceAll(/\s+/g, " ").trim().slice(0, cellMax).replaceAll("|", "\\|");

export const lineOf = ({ file, test, commit, words }: FlakyEntry): string =>
  `| ${[file, test, commit, words].map(cell).join(" | ")} |`;

/** The rows below the head of the one table. */
export function flakyEntriesOf(text: string): readonly FlakyEntry[] {
  const rows = text.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) => {
    const cells = row.split(/(?<!\\)\|/).map((part) => part.replaceAll("\\|", "|").trim());
    const [, file = "", test = "", commit = "", words = ""] = cells;
    return { file, test, commit, words };
  });
}

export const isFailed = ({ failures }: FileReport): boolean => failures.length > 0;

const isOfCommit = (entry: FlakyEntry, commit: string): boolean =>
  entry.commit !== "" && (commit.startsWith(entry.commit) || entry.commit.startsWith(commit));

/** The files that get their second run: none where the first one's failures are no chance. */
export function filesToRunAgain(
  first: RunReport,
  entries: readonly FlakyEntry[],
  commit: string,
): readonly string[] {
  const failed = first.files.filter(isFailed).map(({ file }) => file);
  if (failed.length > againMax) return [];
  return failed.filter((file) => !standsFromEarlier(file, entries, commit));
}

function standsFromEarlier(
  file: string,
  entries: readonly FlakyEntry[],
  commit: string,
): FlakyEntry | undefined {
  return entries.find((entry) => entry.file === file && !isOfCommit(entry, commit));
}

export type Verdict = {
  readonly isPassed: boolean;
  /** To be added to `test/flaky.md`. */
  readonly added: readonly FlakyEntry[];
  /** The closing lines. */
  readonly lines: readonly string[];
};

export type Course = {
  readonly first: RunReport;
  /** Of vitest, of the first run. */
  readonly exitCode: number;
  /** What the second runs came to, by file; undefined: vitest told nothing. */
  readonly again: ReadonlyMap<string, RunReport | undefined>;
  readonly entries: readonly FlakyEntry[];
  readonly commit: string;
  readonly expectedSkips: readonly ExpectedSkip[];
  /** Not all tests were asked for, so most are skipped. */
  readonly isPart: boolean;
};

export function verdictOf(course: Course): Verdict {
  const { first, exitCode, entries, commit } = course;
  const failed = first.files.filter(isFailed);
  const added: FlakyEntry[] = [];
  const lines: string[] = [];
  const faults: string[] = first.strays.map((words) => `An error of no file: ${cell(words)}`);
  if (failed.length > againMax)
    faults.push(
      `${failed.length} files failed: that is no chance, and none of them was run again.`,
    );
  for (const { file, failures } of failed) {
    const earlier = standsFromEarlier(file, entries, commit);
    const words = cell(failures[0]?.words ?? "");
    if (earlier !== undefined)
      faults.push(
        `${file} failed and stands in test/flaky.md since ${earlier.commit}: its cause was not mended (${words})`,
      );
    else if (passedAgain(file, course.again)) {
      const new_ = failures
        .map((failure) => ({ file, commit, ...failure }))
        .filter(
          (entry) =>
            !entries.some((old) => cell(old.test) === cell(entry.test) && old.file === file),
        );
      added.push(...new_);
      lines.push(
        `${file} failed by chance and passed when it was run again, alone: it stands in test/flaky.md, to be mended at its cause (${words})`,
      );
    } else if (course.again.has(file)) faults.push(`${file} failed twice (${words})`);
    else faults.push(`${file} failed (${words})`);
  }
  if (!course.isPart) faults.push(...unexpectedSkips(course));
  if (first.isInterrupted) faults.push("The run was interrupted.");
  if (exitCode !== 0 && failed.length === 0 && faults.length === 0)
    faults.push(`vitest ended with ${exitCode}, though no file failed.`);
  const wait = entries.filter((entry) => !failed.some(({ file }) => file === entry.file));
  if (wait.length > 0)
    lines.push(
      `In test/flaky.md, not failed this time: ${[...new Set(wait.map(({ file }) => file))].join(", ")}`,
    );
  return { isPassed: faults.length === 0, added, lines: [...lines, ...faults] };
}

function passedAgain(file: string, again: ReadonlyMap<string, RunReport | undefined>): boolean {
  const report = again.get(file);
  return (
    report !== undefined &&
    !report.isInterrupted &&
    report.strays.length === 0 &&
    report.files.some((one) => one.file === file && one.tookMs !== undefined && !isFailed(one))
  );
}

/** Of the last run of each file: the first may have failed before it came to its skips. */
function unexpectedSkips({ first, again, expectedSkips }: Course): readonly string[] {
  const reasonFor = (file: string, test: string): ExpectedSkip | undefined =>
    expectedSkips.find(
      (expected) => expected.file === file && test.startsWith(expected.test) && expected.holds(),
    );
  return first.files
    .map((one) => again.get(one.file)?.files.find(({ file }) => file === one.file) ?? one)
    .flatMap(({ file, skips }) =>
      skips
        .filter(({ test }) => reasonFor(file, test) === undefined)
        .map(
          ({ test, note }) =>
            `${file} skipped "${test}"${note === undefined ? "" : ` (${note})`}, for which test/expected-skips.ts has no reason that holds here.`,
        ),
    );
}
