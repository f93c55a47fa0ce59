// Runs test files against a tree, and ends with the verdict: at the first failure, at a file's deadline, or at the end.

import { join } from "node:path";
import type { ChildProcess } from "node:child_process";
import { startHeld } from "./held-process.ts";
import type { FileEvent, FilesToRun } from "./run-files.ts";

export type TestFile = {
  readonly file: string;
  /** Beyond, it hangs. */
  readonly msMax: number;
};

export type Verdict =
  | { readonly kind: "green" }
  | { readonly kind: "red"; readonly file: string; readonly test: string; readonly why: string }
  | { readonly kind: "hung"; readonly file: string };

export type TestRun = {
  readonly verdict: Verdict;
  /** Milliseconds of each file that ended. */
  readonly ended: ReadonlyMap<string, number>;
};

/** From the start of the process to the first file, and from the last to the end. */
const aroundMsMax = 60_000;
export async function runTests(
  root: string,
  files: readonly TestFile[],
  coverageDir?: string,
): Promise<TestRun> {
  const asked: FilesToRun = {
    root,
    files: files.map(({ file }) => file),
    isRecorded: coverageDir !== undefined,
  };
  using held = startHeld(
    root,
    [join(import.meta.dirname, "run-files.ts"), JSON.stringify(asked)],
    coverageDir === undefined ? {} : { NODE_V8_COVERAGE: coverageDir },
  );
  return await watch(held.child, files);
}

async function watch(child: ChildProcess, files: readonly TestFile[]): Promise<TestRun> {
  const limits = new Map(files.map(({ file, msMax }) => [file, msMax]));
  const ended = new Map<string, number>();
  const done = Promise.withResolvers<Verdict>();
  let running = files[0]?.file ?? "";
  let failed: Verdict | undefined;
  let timer: NodeJS.Timeout | undefined;
  const allow = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => done.resolve({ kind: "hung", file: running }), ms);
  };
  allow(aroundMsMax);
  // From our own child.
  child.on("message", (message) => {
    const event = message as FileEvent;
    if (event.kind === "started") {
      running = event.file;
      allow(limits.get(running) ?? aroundMsMax);
    } else if (event.kind === "failed") {
      const file = event.file === "" ? running : event.file;
      done.resolve({ kind: "red", file, test: event.test, why: event.why });
    } else if (event.kind === "ended") {
      ended.set(event.file, event.ms);
      if (event.state === "failed")
        failed = { kind: "red", file: event.file, test: "(file)", why: "it failed" };
      allow(aroundMsMax);
    } else done.resolve(failed ?? { kind: "green" });
  });
  // Before it said that it was over.
  child.on("exit", (code) =>
    done.resolve({ kind: "red", file: running, test: "(process)", why: `ended with ${code}` }),
  );
  child.on("error", (error) =>
    done.resolve({ kind: "red", file: running, test: "(process)", why: error.message }),
  );
  try {
    return { verdict: await done.promise, ended };
  } finally {
    clearTimeout(timer);
  }
}
