// A reporter of vitest: says every so often how far the run is, and writes what came of it where ACCEL_RUN_REPORT tells.

import { writeFileSync } from "node:fs";
import { relative, sep } from "node:path";
import type { SerializedError } from "vitest";
import type { Reporter, TestModule, TestSpecification, Vitest } from "vitest/node";
import { Estimate, readDurations } from "./run-estimate.ts";
import type { Failure, FileReport, RunReport } from "./run-verdict.ts";

/** A line of a log that is read while it grows, not an animation. ACCEL_RUN_SAY_MS sets another pace. */
const everyMs = Number(process.env["ACCEL_RUN_SAY_MS"] ?? 20_000);

class RunReporter implements Reporter {
  #root = "";
  #workers = 1;
  #say: (line: string) => void = () => undefined;
  #files: readonly string[] = [];
  #estimate: Estimate | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #ended = new Map<string, TestModule>();

  onInit({ config, logger }: Vitest): void {
    this.#root = config.root;
    this.#workers = config.maxWorkers;
    this.#say = (line) => logger.log(line);
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#files = specifications.map(({ moduleId }) => this.#fileOf(moduleId));
    const now = performance.now();
    const estimate = new Estimate(this.#files, readDurations(this.#root), this.#workers, now);
    this.#estimate = estimate;
    if (this.#files.length === 0) return;
    this.#say(estimate.words(now));
    this.#timer = setInterval(() => this.#say(estimate.words(performance.now())), everyMs).unref();
  }

  onTestModuleQueued({ moduleId }: TestModule): void {
    this.#estimate?.begins(this.#fileOf(moduleId), performance.now());
  }

  onTestModuleEnd(module: TestModule): void {
    const file = this.#fileOf(module.moduleId);
    this.#estimate?.ends(file, performance.now());
    this.#ended.set(file, module);
  }

  onTestRunEnd(
    _: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: "passed" | "interrupted" | "failed",
  ): void {
    clearInterval(this.#timer);
    const path = process.env["ACCEL_RUN_REPORT"];
    if (path === undefined) return;
    const placed = errors.map((error) => ({
      file: this.#fileOf(textOf(error["VITEST_TEST_PATH"])),
      test: textOf(error["VITEST_TEST_NAME"]),
      words: wordsOf(error),
    }));
    const report: RunReport = {
      files: this.#files.map((file) => this.#reportOf(file, placed)),
      strays: placed.filter(({ file }) => !this.#files.includes(file)).map(({ words }) => words),
      isInterrupted: reason === "interrupted",
    };
    writeFileSync(path, JSON.stringify(report));
  }

  #reportOf(file: string, errors: readonly (Failure & { readonly file: string })[]): FileReport {
    const own = errors
      .filter((error) => error.file === file)
      .map(({ test, words }) => ({ test, words }));
    const module = this.#ended.get(file);
    if (module === undefined) {
      const failures = own.length > 0 ? own : [{ test: "", words: "never came to its end" }];
      return { file, tookMs: undefined, failures, skips: [] };
    }
    const tests = [...module.children.allTests()];
    const failures = [
      ...module.errors().map((error) => ({ test: "", words: wordsOf(error) })),
      ...[...module.children.allSuites()].flatMap((suite) =>
        suite.errors().map((error) => ({ test: suite.fullName, words: wordsOf(error) })),
      ),
      ...tests.flatMap((test) => {
        const result = test.result();
        if (result.state !== "failed") return [];
        return [{ test: test.fullName, words: wordsOf(result.errors[0]) }];
      }),
      ...own,
    ];
    const skips = tests.flatMap((test) => {
      const result = test.result();
      return result.state === "skipped" ? [{ test: test.fullName, note: result.note }] : [];
    });
    const isUntold = module.state() === "failed" && failures.length === 0;
    return {
      file,
      tookMs: this.#estimate?.tookMs.get(file) ?? 0,
      failures: isUntold ? [{ test: "", words: "failed" }] : failures,
      skips,
    };
  }

  #fileOf(path: string): string {
    return relative(this.#root, path).split(sep).join("/");
  }
}

const wordsOf = (
  error: { readonly name?: string; readonly message?: string } | undefined,
): string => `${error?.name ?? "Error"}: ${error?.message ?? ""}`;

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

// vitest takes a reporter that is named by its file from there.
export default RunReporter;
