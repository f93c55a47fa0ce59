// `npm test` itself: how it counts, what it forgives in CI and what not, on planted projects that real runs of vitest judge.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { expectedSkips } from "./expected-skips.ts";
import { node } from "./support/process.ts";
import { Estimate, expectedMs } from "./support/run-estimate.ts";
import {
  againMax,
  filesToRunAgain,
  flakyEntriesOf,
  lineOf,
  verdictOf,
  type Course,
  type FileReport,
  type RunReport,
} from "./support/run-verdict.ts";
import { tempDir } from "./support/temp-dir.ts";

vi.setConfig({ testTimeout: 400_000 }); // Each run is several processes.

const root = join(import.meta.dirname, "..");

/** A clone of its own with these files; `tracked` by git, whose commits are the changes. */
class Project implements Disposable {
  readonly #dir = tempDir();
  commit = "";

  constructor(files: Readonly<Record<string, string>>) {
    symlinkSync(join(root, "node_modules"), join(this.#dir.path, "node_modules"));
    this.write({
      "vitest.config.ts": `export default { test: { include: ["test/**/*.test.ts"], maxWorkers: 2, pool: "forks" } };`,
      "package.json": '{ "type": "module" }',
      ".gitignore": "node_modules\nvar\n",
      ...files,
    });
    this.#git("init", "-q");
    this.change("first");
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.#dir.path, path)), { recursive: true });
      writeFileSync(join(this.#dir.path, path), text);
    }
  }

  read(path: string): string {
    const whole = join(this.#dir.path, path);
    return existsSync(whole) ? readFileSync(whole, "utf8") : "";
  }

  /** Commits what is there. */
  change(message: string): void {
    const author = ["-c", "user.name=n", "-c", "user.email=n@example.com"];
    this.#git("add", "-A");
    this.#git(...author, "commit", "-q", "--allow-empty", "-m", message);
    this.commit = this.#git("rev-parse", "--short=10", "HEAD").trim();
  }

  run(
    ci: "true" | "",
    ...args: readonly string[]
  ): { readonly code: number | null; readonly said: string } {
    const { status, stdout, stderr } = spawnSync(node, [join(root, "test", "run.ts"), ...args], {
      cwd: this.#dir.path,
      encoding: "utf8",
      env: {
        PATH: process.env["PATH"],
        HOME: this.#dir.path,
        CI: ci,
        NO_COLOR: "1",
        ACCEL_RUN_SAY_MS: "20",
      },
    });
    // Where it fails for another reason than a test should, that is seen, too.
    if (stderr !== "" && stdout === "") return { code: status, said: stderr };
    return { code: status, said: stdout };
  }

  get flaky(): readonly unknown[] {
    return flakyEntriesOf(this.read("test/flaky.md"));
  }

  #git(...args: readonly string[]): string {
    return spawnSync("git", args, { cwd: this.#dir.path, encoding: "utf8" }).stdout;
  }

  [Symbol.dispose](): void {
    this.#dir[Symbol.dispose]();
  }
}

const head = `import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
`;
const good = `${head}test("holds", () => expect(1).toBe(1));\n`;
const bad = `${head}test("never holds", () => expect("one|two").toBe(2));\n`;
/** Fails in every second run, the first one included. */
const byTurns = (name: string): string => `${head}
const turns = "var/${name}";
appendFileSync(turns, "x");
const turn = readFileSync(turns, "utf8").length;
describe("now and then", () => {
  test("holds", () => expect(\`turn of \${turn % 2}\`).toBe("turn of 0"));
  test("always holds", () => expect(existsSync(turns)).toBe(true));
});
`;
const inVar = { "var/here": "" };

describe("in CI", () => {
  test("a file that fails by chance is run again alone, is named at the end and stands in flaky.md; the run passes", () => {
    using project = new Project({
      ...inVar,
      "test/a.test.ts": good,
      "test/b.test.ts": byTurns("b"),
    });
    const { code, said } = project.run("true");
    expect({ code, said }).toMatchObject({ code: 0 });
    expect(said).toContain("\ntest/b.test.ts failed: once more, alone.\n");
    // Alone: nothing else is in the second run.
    expect(said.match(/^Test Files.*|^ *Test Files .*/gm)).toEqual([
      expect.stringContaining("1 failed | 1 passed (2)"),
      expect.stringContaining("1 passed (1)"),
    ]);
    const entry = {
      file: "test/b.test.ts",
      test: "now and then > holds",
      commit: project.commit,
      words: expect.stringMatching(/^AssertionError: expected 'turn of 1' to be 'turn of 0'/),
    };
    expect(project.flaky).toEqual([entry]);
    const closing = said.trimEnd().split("\n").slice(-2);
    expect(closing[0]).toMatch(
      /^test\/b\.test\.ts failed by chance and passed when it was run again, alone: it stands in test\/flaky\.md/,
    );
    expect(flakyEntriesOf(`|\n|\n${closing[1]}`)).toEqual([entry]);

    // The same change once more: it is forgiven once more, and stands there once.
    expect(project.run("true")).toMatchObject({ code: 0 });
    expect(project.flaky).toEqual([entry]);

    // A later change: no more.
    project.change("second");
    const later = project.run("true");
    expect(later).toMatchObject({ code: 1 });
    expect(later.said).not.toContain("once more");
    expect(later.said.trimEnd().split("\n").at(-1)).toMatch(
      new RegExp(
        `^test/b\\.test\\.ts failed and stands in test/flaky\\.md since ${entry.commit}: `,
      ),
    );
    expect(project.flaky).toEqual([entry]);

    // It does not fail this time: the run passes and says that it waits.
    expect(project.run("true")).toMatchObject({
      code: 0,
      said: expect.stringMatching(
        /\nIn test\/flaky\.md, not failed this time: test\/b\.test\.ts\n$/,
      ),
    });
  });

  test("a file that fails twice fails the run, beside one that failed by chance", () => {
    using project = new Project({
      ...inVar,
      "test/a.test.ts": bad,
      "test/b.test.ts": byTurns("b"),
      "test/c.test.ts": good,
    });
    const { code, said } = project.run("true");
    expect({ code, said }).toMatchObject({ code: 1 });
    expect(said.trimEnd().split("\n").slice(-3)).toEqual([
      expect.stringMatching(/^test\/b\.test\.ts failed by chance/),
      expect.stringMatching(
        /^test\/a\.test\.ts failed twice \(AssertionError: expected 'one\\\|two' to be 2/,
      ),
      expect.stringMatching(/^\| test\/b\.test\.ts \| /),
    ]);
    expect(project.flaky).toMatchObject([{ file: "test/b.test.ts" }]);
  });

  test.each([
    ["fails to load", `throw new Error("not loaded");\n`],
    ["has no test", "export const x = 1;\n"],
    ["ends its process", `${head}test("x", () => void process.kill(process.pid, "SIGKILL"));\n`],
    [
      "fails in a hook",
      `${head}afterAll(() => { throw new Error("hook"); });\ntest("x", () => expect(1).toBe(1));\n`,
    ],
    [
      "leaves a rejection",
      `${head}test("x", () => { void Promise.reject(new Error("left")); expect(1).toBe(1); });\n`,
    ],
    ["has an only", `${head}test.only("x", () => expect(1).toBe(1));\n`],
  ])("a file that %s fails twice, too", (_, text) => {
    using project = new Project({ "test/a.test.ts": text, "test/b.test.ts": good });
    const { code, said } = project.run("true");
    expect({ code, said }).toMatchObject({ code: 1 });
    expect(said).toMatch(/\ntest\/a\.test\.ts failed twice \(.+\)\n$/);
    expect(project.flaky).toEqual([]);
  });

  test("a skip needs a reason that holds", () => {
    const skipping = `${head}
test.skip("one", () => expect(1).toBe(1));
test("two", (its) => its.skip(true, "not here"));
test.todo("three");
describe.skip("four", () => { test("five", () => expect(1).toBe(1)); });
test("six", () => expect(1).toBe(1));
`;
    using project = new Project({ "test/a.test.ts": skipping });
    const { code, said } = project.run("true");
    expect({ code, said }).toMatchObject({ code: 1 });
    const words = (name: string, note = ""): string =>
      `test/a.test.ts skipped "${name}"${note}, for which test/expected-skips.ts has no reason that holds here.`;
    const told = [words("one"), words("two", " (not here)"), words("three"), words("four > five")];
    expect(said.trimEnd().split("\n").slice(-4)).toEqual(told);

    const listed = (holds: boolean): string =>
      `export const expectedSkips = ["one", "two", "three", "four"].map((test) => ({ file: "test/a.test.ts", test, reason: "", holds: () => test !== "two" || ${holds} }));\n`;
    project.write({ "test/expected-skips.ts": listed(false) });
    const second = project.run("true");
    expect({ code: second.code, end: second.said.trimEnd().split("\n").at(-1) }).toEqual({
      code: 1,
      end: told[1],
    });
    project.write({ "test/expected-skips.ts": listed(true) });
    expect(project.run("true")).toMatchObject({ code: 0 });
    // Whoever asks for one test by its name skips all others.
    project.write({ "test/expected-skips.ts": "export const expectedSkips = [];\n" });
    expect(project.run("true", "-t", "six")).toMatchObject({ code: 0 });
  });

  test("nothing to run, or an option that vitest does not know, fails", () => {
    using project = new Project({ "test/a.test.ts": good });
    expect(project.run("true", "test/nowhere")).toMatchObject({ code: 1 });
    expect(project.run("true", "--no-such-option")).toMatchObject({ code: 1 });
  });
});

describe("elsewhere", () => {
  test("nothing is run again, nothing written, and skips are free; what vitest takes is passed on", () => {
    using project = new Project({
      ...inVar,
      "test/a.test.ts": `${head}test.skip("one", () => expect(1).toBe(1));\n${good.replace(head, "")}`,
      "test/b.test.ts": byTurns("b"),
    });
    const { code, said } = project.run("", "--maxWorkers=1");
    expect({ code, said }).toMatchObject({ code: 1 });
    expect(said).not.toContain("once more");
    expect(project.read("test/flaky.md")).toBe("");
    expect(project.run("", "test/a.test.ts")).toMatchObject({
      code: 0,
      said: expect.stringContaining("1 file, about "),
    });
  });

  test("it says how long it will take, by what was measured here, else by what the clone came with", () => {
    using project = new Project({
      "test/a.test.ts": good,
      "test/b.test.ts": good,
      "test/durations.json": `{ "test/a.test.ts": 600000, "test/b.test.ts": 540000 }`,
    });
    const { said } = project.run("");
    expect(said).toContain("\n2 files, about 10 min\n");
    expect(said).toMatch(/\n[01] of 2 files, \d s of about \d+ (?:min|s)\n/);
    expect(project.run("").said).toMatch(/\n2 files, about [1-9] s\n/);
    expect(Object.keys(JSON.parse(project.read("var/test-durations.json")) as object)).toEqual([
      "test/a.test.ts",
      "test/b.test.ts",
    ]);
  });
});

describe("the estimate", () => {
  const known = { "a/1": 100_000, "a/2": 100_000, "b/1": 10_000, "b/2": 20_000 };

  test("a new file takes as long as those beside it, else as all do", () => {
    expect(expectedMs("a/1", known)).toBe(100_000);
    expect(expectedMs("b/new", known)).toBe(15_000);
    expect(expectedMs("c/new", known)).toBe(57_500);
    expect(expectedMs("c/new", {})).toBe(1_000);
  });

  test("workers share what is left, the longest file is the least", () => {
    expect(new Estimate(["a/1", "a/2"], known, 2, 5).totalMs(5)).toBe(100_200);
    expect(new Estimate(["a/1", "a/2"], known, 1, 5).totalMs(5)).toBe(200_400);
    expect(new Estimate(["a/1", "b/1"], known, 2, 5).totalMs(5)).toBe(100_200);
    expect(new Estimate(["b/1"], known, 8, 5).totalMs(5)).toBe(10_200);
  });

  test("it goes with the run, and a slow host is noticed", () => {
    const estimate = new Estimate(["a/1", "a/2", "b/1", "b/2"], known, 1, 0);
    expect(estimate.words(0)).toBe("4 files, about 4 min");
    estimate.begins("a/1", 0);
    expect(estimate.words(50_000)).toBe("0 of 4 files, 50 s of about 4 min");
    estimate.ends("a/1", 200_000);
    // 200 s for what took 100 s: with the prior of 20 s, 220 for 120.
    expect(estimate.totalMs(200_000)).toBeCloseTo(200_000 + (130_600 * 220) / 120, 0);
    expect(estimate.words(200_000)).toBe("1 of 4 files, 3 min 20 s of about 7 min");
    for (const file of ["a/2", "b/1", "b/2"]) {
      estimate.begins(file, 200_000);
      estimate.ends(file, 250_000);
    }
    expect(estimate.words(250_000)).toBe("4 of 4 files, 4 min 10 s of about 4 min");
  });

  test("a run that is longer than was thought is never over before its end", () => {
    const estimate = new Estimate(["b/1"], known, 1, 0);
    estimate.begins("b/1", 0);
    for (const now of [9_000, 10_000, 60_000, 600_000])
      expect(estimate.totalMs(now)).toBeGreaterThanOrEqual(now);
  });
});

test("a quick run leaves out what starts programs and what takes long", () => {
  using project = new Project({
    "test/deep/a.test.ts": good,
    "test/new.test.ts": good,
    "test/long.test.ts": bad,
    "test/starts.test.ts": `import "./support/start.ts";\n${bad}`,
    "test/support/start.ts": 'import { spawn } from "node:child_process";\nexport { spawn };\n',
    "test/durations.json": `{ "test/deep/a.test.ts": 1000, "test/long.test.ts": 1100 }`,
    // A machine that was busy leaves nothing out.
    "var/test-durations.json": `{ "test/deep/a.test.ts": 9000 }`,
  });
  const { code, said } = project.run("", "--quick");
  expect(said).toContain("2 of 4 files: the others start programs, or took more than a second");
  expect(said).toContain("2 passed (2)");
  expect(said).not.toContain("never holds");
  expect(code).toBe(0);
  expect(project.run("").code).toBe(1);
});

describe("the verdict", () => {
  const passed = (file: string): FileReport => ({ file, tookMs: 1, failures: [], skips: [] });
  const failed = (file: string): FileReport => ({
    ...passed(file),
    failures: [{ test: "t", words: "w" }],
  });
  const runOf = (...files: readonly FileReport[]): RunReport => ({
    files,
    strays: [],
    isInterrupted: false,
  });
  const course = (some: Partial<Course>): Course => ({
    first: runOf(failed("f")),
    exitCode: 1,
    again: new Map(),
    entries: [],
    commit: "abcdef1234",
    expectedSkips: [],
    isPart: false,
    ...some,
  });
  const entry = { file: "f", test: "t", commit: "0123456789", words: "w" };

  test.each<[string, boolean, Partial<Course>]>([
    ["all passed", true, { first: runOf(passed("f")), exitCode: 0 }],
    ["passed again", true, { again: new Map([["f", runOf(passed("f"))]]) }],
    ["failed again", false, { again: new Map([["f", runOf(failed("f"))]]) }],
    ["the second run told nothing", false, { again: new Map([["f", undefined]]) }],
    ["the second run had no such file", false, { again: new Map([["f", runOf()]]) }],
    [
      "the second run was interrupted",
      false,
      { again: new Map([["f", { ...runOf(passed("f")), isInterrupted: true }]]) },
    ],
    [
      "the second run left an error",
      false,
      { again: new Map([["f", { ...runOf(passed("f")), strays: ["e"] }]]) },
    ],
    [
      "the second run never ended",
      false,
      { again: new Map([["f", runOf({ ...passed("f"), tookMs: undefined })]]) },
    ],
    ["no second run", false, {}],
    [
      "passed again, an entry of the same commit",
      true,
      { again: new Map([["f", runOf(passed("f"))]]), entries: [{ ...entry, commit: "abcdef1" }] },
    ],
    [
      "passed again, an entry of an earlier one",
      false,
      { again: new Map([["f", runOf(passed("f"))]]), entries: [entry] },
    ],
    [
      "passed again, an entry of another file",
      true,
      { again: new Map([["f", runOf(passed("f"))]]), entries: [{ ...entry, file: "g" }] },
    ],
    ["an error of no file", false, { first: { ...runOf(passed("f")), strays: ["e"] } }],
    ["interrupted", false, { first: { ...runOf(passed("f")), isInterrupted: true }, exitCode: 0 }],
    ["vitest is not content and does not say why", false, { first: runOf(passed("f")) }],
    [
      "a skip without reason",
      false,
      { first: runOf({ ...passed("f"), skips: [{ test: "t", note: undefined }] }), exitCode: 0 },
    ],
    [
      "a skip of a part",
      true,
      {
        first: runOf({ ...passed("f"), skips: [{ test: "t", note: undefined }] }),
        exitCode: 0,
        isPart: true,
      },
    ],
    [
      "a skip in the second run alone",
      false,
      {
        again: new Map([["f", runOf({ ...passed("f"), skips: [{ test: "t", note: undefined }] })]]),
      },
    ],
  ])("%s: %s", (_, isPassed, some) => {
    expect(verdictOf(course(some)).isPassed).toBe(isPassed);
  });

  test("many files that fail at once are no chance, nor is one that stood there before", () => {
    const many = Array.from({ length: againMax + 1 }, (_, at) => failed(`f${at}`));
    expect(filesToRunAgain(runOf(...many), [], "c")).toEqual([]);
    expect(verdictOf(course({ first: runOf(...many) })).lines[0]).toBe(
      `${againMax + 1} files failed: that is no chance, and none of them was run again.`,
    );
    const few = runOf(...many.slice(1), passed("g"));
    expect(filesToRunAgain(few, [], "c").length).toBe(againMax);
    expect(filesToRunAgain(runOf(failed("f"), failed("g")), [entry], "c")).toEqual(["g"]);
  });

  test("a line of flaky.md is read as it was written, whatever a failure says", () => {
    const written = { file: "f", test: "a | b", commit: "c", words: `x\n  y|z ${"w".repeat(200)}` };
    const [read] = flakyEntriesOf(`# Head\n\n| a |\n|---|\n${lineOf(written)}\n`);
    expect(read).toEqual({ ...written, words: `x y|z ${"w".repeat(114)}` });
  });
});

test("every expected skip is of a test that there is", () => {
  expect(expectedSkips.length).toBeGreaterThan(5);
  for (const { file, test: name, reason } of expectedSkips) {
    expect(reason).not.toBe("");
    const text = readFileSync(join(root, file), "utf8");
    const parts = file.includes("/postgres-") ? [] : name.split(" > ");
    for (const part of parts) expect(text).toContain(part.trim());
  }
});
