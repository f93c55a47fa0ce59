// Which test file runs which part of which source file, and how long it takes: recorded once, a file of JSON each, kept while the test file is the same.
// Child processes and workers write their coverage too; of programs that a test kills with SIGKILL nothing is known.

import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Edit } from "./mutant.ts";
import { runTests } from "./test-run.ts";

/** Offsets of what was run, `[from, to, from, to, …)`, in the text with this digest. */
type Covered = { readonly digest: string; readonly ranges: readonly number[] };

export type Recorded = {
  readonly test: string;
  readonly digest: string;
  readonly ms: number;
  /** Of a test file that is not green where nothing is mutated. */
  readonly why?: string;
  readonly files: Readonly<Record<string, Covered>>;
};

const recordMsMax = 300_000;

export const digestOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 16);

export class TestMap {
  readonly #dir: string;
  readonly #tests = new Map<string, Recorded>();

  constructor(dir: string) {
    this.#dir = dir;
    mkdirSync(dir, { recursive: true });
    for (const name of readdirSync(dir).filter((name) => name.endsWith(".json"))) {
      // Written by `record`.
      const recorded = JSON.parse(readFileSync(join(dir, name), "utf8")) as Recorded;
      this.#tests.set(recorded.test, recorded);
    }
  }

  get(test: string): Recorded | undefined {
    return this.#tests.get(test);
  }

  isFresh(root: string, test: string): boolean {
    return this.get(test)?.digest === digestOf(readFileSync(join(root, test), "utf8"));
  }

  async record(root: string, test: string): Promise<Recorded> {
    const coverage = mkdtempSync(join(tmpdir(), "am-coverage-"));
    try {
      const { verdict, ended } = await runTests(
        root,
        [{ file: test, msMax: recordMsMax }],
        coverage,
      );
      const recorded: Recorded = {
        test,
        digest: digestOf(readFileSync(join(root, test), "utf8")),
        ms: Math.round(ended.get(test) ?? recordMsMax),
        ...(verdict.kind === "green" ? {} : { why: JSON.stringify(verdict) }),
        files: coveredFiles(root, coverage),
      };
      this.#tests.set(test, recorded);
      writeFileSync(
        join(this.#dir, `${test.replaceAll("/", "__")}.json`),
        JSON.stringify(recorded),
      );
      return recorded;
    } finally {
      rmSync(coverage, { recursive: true, force: true });
    }
  }

  /** Those of `tests` that run the place of the edit; where the text has changed since, or nobody runs it, those that load the file. */
  related(
    tests: readonly string[],
    file: string,
    text: string,
    { start }: Edit,
  ): readonly Related[] {
    const digest = digestOf(text);
    const loading = tests.flatMap((test) => {
      const recorded = this.#tests.get(test);
      const covered = recorded?.files[file];
      if (recorded === undefined || recorded.why !== undefined || covered === undefined) return [];
      const runs = covered.digest !== digest || holds(covered.ranges, start);
      return [{ test, ms: recorded.ms, runs, share: lengthOf(covered.ranges) / text.length }];
    });
    const running = loading.filter(({ runs }) => runs);
    return running.length > 0 ? running : loading;
  }
}

export type Related = {
  readonly test: string;
  readonly ms: number;
  readonly runs: boolean;
  /** How much of the source file it runs, 0 to 1. */
  readonly share: number;
};

type V8Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number };
type V8Coverage = {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly V8Range[] }[];
  }[];
};

function coveredFiles(root: string, dir: string): Record<string, Covered> {
  const sources = join(root, "src/");
  const marks = new Map<string, Uint8Array>();
  for (const name of existsSync(dir) ? readdirSync(dir) : []) {
    let report: V8Coverage;
    try {
      // Node's own.
      report = JSON.parse(readFileSync(join(dir, name), "utf8")) as V8Coverage;
    } catch {
      continue; // Its process was killed while it wrote.
    }
    for (const { url, functions } of report.result) {
      const path = url.startsWith("file:") ? fileURLToPath(url.replace(/[?#].*/, "")) : "";
      if (!path.startsWith(sources) || !existsSync(path)) continue;
      const file = path.slice(root.length + 1);
      const length = readFileSync(path, "utf8").length;
      const all = marks.get(file) ?? new Uint8Array(length);
      marks.set(file, all);
      const now = new Uint8Array(length);
      // Outer ranges first: the innermost has the last word.
      for (const { startOffset, endOffset, count } of functions
        .flatMap(({ ranges }) => ranges)
        .toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset))
        now.fill(count > 0 ? 1 : 0, startOffset, endOffset);
      for (let at = 0; at < length; at++) all[at] = (all[at] ?? 0) | (now[at] ?? 0);
    }
  }
  return Object.fromEntries(
    [...marks].map(([file, covered]) => [
      file,
      { digest: digestOf(readFileSync(join(root, file), "utf8")), ranges: rangesOf(covered) },
    ]),
  );
}

function rangesOf(covered: Uint8Array): readonly number[] {
  const ranges: number[] = [];
  for (let at = 0; at <= covered.length; at++)
    if ((covered[at] ?? 0) !== (covered[at - 1] ?? 0)) ranges.push(at);
  return ranges;
}

function holds(ranges: readonly number[], place: number): boolean {
  return ranges.filter((border) => border <= place).length % 2 === 1;
}

function lengthOf(ranges: readonly number[]): number {
  return ranges.reduce((sum, border, at) => sum + (at % 2 === 1 ? border : -border), 0);
}
