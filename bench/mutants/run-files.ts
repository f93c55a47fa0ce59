// A process of its own that runs test files in the given order, one after another, and tells its parent of each: started by test-run.ts, ended by it.
// The files run as node runs them (type stripping), so that positions in a coverage report are positions in the source.

import { join, relative } from "node:path";
import { startVitest, type TestModule } from "vitest/node";

/** What the parent gives as the only argument, in JSON. */
export type FilesToRun = {
  readonly root: string;
  readonly files: readonly string[];
  /** Whether `NODE_V8_COVERAGE` is to be written before a file's process ends. */
  readonly isRecorded: boolean;
};

export type FileEvent =
  | { readonly kind: "started"; readonly file: string }
  | { readonly kind: "failed"; readonly file: string; readonly test: string; readonly why: string }
  | {
      readonly kind: "ended";
      readonly file: string;
      readonly state: "passed" | "failed" | "skipped";
      readonly ms: number;
    }
  | { readonly kind: "over" };

type Sorted = { readonly moduleId: string };

const testMsMax = 120_000;

// JSON of our own parent.
const { root, files, isRecorded } = JSON.parse(process.argv[2] ?? "{}") as FilesToRun;
const place = new Map(files.map((file, at) => [join(root, file), at]));

/** The order that was asked for. */
class InOrder {
  async shard<T>(specifications: T[]): Promise<T[]> {
    return specifications;
  }
  async sort<T extends Sorted>(specifications: T[]): Promise<T[]> {
    const at = ({ moduleId }: T): number => place.get(moduleId) ?? files.length;
    return specifications.toSorted((a, b) => at(a) - at(b));
  }
}

const tell = (event: FileEvent): void => void process.send?.(event);
const fileOf = ({ moduleId }: TestModule): string => relative(root, moduleId);

const vitest = await startVitest(
  "test",
  [...place.keys()],
  {
    root,
    config: false,
    watch: false,
    include: ["test/**/*.test.ts"],
    testTimeout: testMsMax,
    hookTimeout: 300_000,
    pool: "forks",
    maxWorkers: 1,
    bail: 1,
    sequence: { sequencer: InOrder },
    experimental: { viteModuleRunner: false },
    setupFiles: isRecorded ? [join(import.meta.dirname, "recorded.ts")] : [],
    reporters: [
      {
        onTestModuleStart: (module) => tell({ kind: "started", file: fileOf(module) }),
        onTestCaseResult: (test) => {
          const result = test.result();
          if (result.state !== "failed") return;
          const [why = ""] = (result.errors[0]?.message ?? "").split("\n");
          tell({ kind: "failed", file: fileOf(test.module), test: test.fullName, why });
        },
        onTestModuleEnd: (module) => {
          const file = fileOf(module);
          const state = module.state();
          const ms = module.diagnostic().duration + module.diagnostic().collectDuration;
          const [error] = module.errors();
          if (error !== undefined)
            tell({ kind: "failed", file, test: "(file)", why: error.message });
          tell({
            kind: "ended",
            file,
            state: state === "passed" || state === "failed" ? state : "skipped",
            ms,
          });
        },
        onTestRunEnd: (_modules, errors) => {
          // Of nobody's test: a promise that nobody awaited, for instance.
          const [error] = errors;
          if (error !== undefined)
            tell({ kind: "failed", file: "", test: "(run)", why: error.message });
        },
      },
    ],
  },
  { server: { watch: null } },
);
await vitest.close();
tell({ kind: "over" });
process.disconnect?.();
