// One of our programs as a child process: started, watched, restarted when it dies (as systemd would), stopped cleanly.
//
// The child runs in its own process group, so that Ctrl-C reaches only us and we decide the order; a lost IPC channel tells it that we died.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { AccelError } from "../core/faults.ts";
import { sleep } from "../base/wait.ts";

export type ProgramOptions = {
  /** The file of both our programs. */
  readonly program: string;
  readonly name: string;
  readonly args: readonly string[];
  /** The child's stdout and stderr, appended. */
  readonly logFile: string;
  /** Answers 200 when the program is up. */
  readonly readyUrl: string;
  readonly stop: AbortSignal;
  readonly onRestart: (how: string) => void;
};

const startDeadlineMs = 30_000;
const stopGraceMs = 15_000;
const restartPauseMs = 500;

/** Resolves when the program is ready. Throws with what the program said when it ends before that. */
export async function startProgram(options: ProgramOptions): Promise<AsyncDisposable> {
  const ending = new AbortController();
  let child = launch(options);
  await untilReady(options, child);
  const watch = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      if (ending.signal.aborted || options.stop.aborted) return;
      options.onRestart(
        child.signalCode === null
          ? `exited with ${child.exitCode}`
          : `was ended by ${child.signalCode}`,
      );
      if (!(await sleep(restartPauseMs, ending.signal))) return;
      child = launch(options);
    }
  };
  const watching = watch();
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      await end(child);
      await watching;
    },
  };
}

function launch({ program, name, args, logFile }: ProgramOptions): ChildProcess {
  const child = spawn(process.execPath, [program, name, ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const log = createWriteStream(logFile, { flags: "a", mode: 0o600 });
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  child.once("close", () => log.end());
  return child;
}

async function untilReady(
  { name, readyUrl, logFile, stop }: ProgramOptions,
  child: ChildProcess,
): Promise<void> {
  const deadline = performance.now() + startDeadlineMs;
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new AccelError(
        "INTERNAL",
        `accel-${name} did not start; it said:\n${lastLines(logFile)}`,
      );
    }
    try {
      const response = await fetch(readyUrl, { signal: AbortSignal.timeout(1_000) });
      await response.body?.cancel();
      if (response.status === 200) return;
    } catch {
      // Not listening yet.
    }
    if (!(await sleep(50, stop))) break;
  }
  await end(child);
  if (!stop.aborted)
    throw new AccelError(
      "INTERNAL",
      `accel-${name} was not ready within ${startDeadlineMs / 1_000} s; it said:\n${lastLines(logFile)}`,
    );
}

function lastLines(logFile: string): string {
  return readFileSync(logFile, "utf8").trimEnd().split("\n").slice(-6).join("\n");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
  await exited;
  clearTimeout(kill);
}
