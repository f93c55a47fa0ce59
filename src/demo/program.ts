// One of our programs as a child process: started, watched, restarted when it dies (as systemd would), stopped cleanly.
//
// The child runs in its own process group, so that Ctrl-C reaches only us and we decide the order. A lost IPC
// channel tells it that we died.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { AccelError } from "../core/faults.ts";
import { sleep } from "../base/wait.ts";

export type ProgramOptions = {
  /** The file of both our programs. */
  readonly program: string;
  readonly name: string;
  readonly args: readonly string[];
  /** The child's stdout and stderr, appended. */
  readonly logFile: string;
  /** A directory for compiled code, which the next start reads. */
  readonly compileCache: string;
  /** The URL that answers 200 when the program is up. */
  readonly readyUrl: string;
  readonly stop: AbortSignal;
  readonly onRestart: (how: string) => void;
};

type Launched = {
  readonly child: ChildProcess;
  /** Returns what the command said when it failed. */
  readonly complaint: () => string;
};

const startDeadlineMs = 30_000;
const stopGraceMs = 15_000;
const restartPauseMs = 500;
const complaintCharsMax = 4_000;

/**
 * Starts the program. Resolves when it is ready, or `stop` has aborted. Throws DEMO_NOT_READY with what the
 * program said if it ends before that.
 */
export async function startProgram(options: ProgramOptions): Promise<AsyncDisposable> {
  const ending = new AbortController();
  const first = launch(options);
  let { child } = first;
  await untilReady(options, first);
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
      ({ child } = launch(options));
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

function launch({ program, name, args, logFile, compileCache }: ProgramOptions): Launched {
  const child = spawn(process.execPath, [program, name, ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // As the units set them.
    env: { ...process.env, MALLOC_ARENA_MAX: "2", NODE_COMPILE_CACHE: compileCache },
  });
  const log = createWriteStream(logFile, { flags: "a", mode: 0o600 });
  // A log that cannot be written, on a full disk, ends nobody. What the program says is still read, so that
  // it never waits for us.
  let isWritable = true;
  log.on("error", () => (isWritable = false));
  const write = (chunk: Buffer): void => {
    if (isWritable) log.write(chunk);
  };
  let said = "";
  child.stdout?.on("data", write);
  child.stderr?.on("data", (chunk: Buffer) => {
    said = `${said}${chunk.toString()}`.slice(-complaintCharsMax);
    write(chunk);
  });
  child.once("close", () => log.end());
  return { child, complaint: () => complaintOf(said, name) };
}

/** Returns the text behind `accel-central: `, without the hint for other callers and the stack. */
function complaintOf(said: string, name: string): string {
  const prefix = `accel-${name}: `;
  const line = said.split("\n").findLast((one) => one.startsWith(prefix));
  return (
    line?.slice(prefix.length) ?? (said.trim().split("\n").at(-1) || "it ended without a word")
  );
}

async function untilReady(
  { name, readyUrl, stop }: ProgramOptions,
  { child, complaint }: Launched,
): Promise<void> {
  const deadline = performance.now() + startDeadlineMs;
  const failed = (why: string): AccelError =>
    new AccelError("DEMO_NOT_READY", `accel-${name} did not start: ${why}`);
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) {
      await closed(child);
      throw failed(complaint());
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
  if (!stop.aborted) throw failed(`it was not ready within ${startDeadlineMs / 1_000} s`);
}

/** Resolves when all that it said has been read. */
async function closed(child: ChildProcess): Promise<void> {
  const isOpen = child.stderr?.readableEnded === false || child.stdout?.readableEnded === false;
  if (isOpen) await once(child, "close");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
  await exited;
  clearTimeout(kill);
}
