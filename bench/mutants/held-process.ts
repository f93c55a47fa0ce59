// A process that leaves nothing behind: it has a group of its own, and whatever it started carries a mark in its environment; both are killed at the end.

import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const markName = "ACCEL_MUTANT_RUN";
/** A mutant that fills its memory ends by that, long before the machine has none. */
const heapMb = 1_500;

export type Held = Disposable & { readonly child: ChildProcess };

/** In `root`, by its own node. Temporary files go where they are removed. It has a channel to send messages. */
export function startHeld(
  root: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
  output: "ignore" | "pipe" = "ignore",
): Held {
  const mark = randomUUID();
  const temp = mkdtempSync(join(tmpdir(), "am-"));
  // Some tests start programs as another user, who has to get through.
  chmodSync(temp, 0o755);
  const { ACCEL_TEST_MAIN: _built, NODE_V8_COVERAGE: _coverage, ...own } = process.env;
  const child = spawn(join(root, "node_modules/.bin/node"), args, {
    cwd: root,
    detached: true,
    stdio: ["ignore", output, "ignore", "ipc"],
    env: {
      ...own,
      TMPDIR: temp,
      [markName]: mark,
      NODE_OPTIONS: `--max-old-space-size=${heapMb}`,
      ...more,
    },
  });
  const end = (): void => {
    killGroup(child);
    killMarked(mark);
    rmSync(temp, { recursive: true, force: true, maxRetries: 3 });
  };
  process.once("exit", end);
  return {
    child,
    [Symbol.dispose]: () => {
      process.removeListener("exit", end);
      end();
    },
  };
}

/** Its exit code; null where it was killed, or took longer. */
export async function codeOf({ child }: Held, msMax: number): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  const timer = setTimeout(() => resolve(null), msMax);
  child.on("exit", resolve).on("error", reject);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}

/** Processes that left the group. Twice: one of them may have started another meanwhile. */
function killMarked(mark: string): void {
  for (let round = 0; round < 2; round++)
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, "latin1");
        if (environment.includes(`${markName}=${mark}`)) process.kill(Number(pid), "SIGKILL");
      } catch {
        // It has ended, or is somebody else's.
      }
}
