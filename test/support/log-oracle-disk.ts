// Faults below a running program: system calls of chosen threads fail, or the n-th of them is the program's last. By strace, which a system may lack.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { until } from "./until.ts";

/** Where strace is missing or may not attach, its tests skip, and say how to get it. */
export const straceMissing = spawnSync("strace", ["-qq", "true"]).status !== 0;
export const straceHint = "needs strace and the right to trace: apt-get install strace";
export const prlimitMissing = spawnSync("prlimit", ["--version"]).status !== 0;

/** Those of its disk: what a spool or a store does. */
export const writingCalls = [
  "pwrite64",
  "fdatasync",
  "fsync",
  "openat",
  "unlink",
  "rename",
  "ftruncate",
] as const;

/** Threads whose name is `name`. */
export function threadsOf(pid: number, name: string): readonly number[] {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks)
    .map(Number)
    .filter((tid) => fileOr(`${tasks}/${tid}/comm`, "").trim() === name);
}

/**
 * Until disposed, `what` (strace's word: `error=EIO`, `signal=SIGKILL:when=3`) happens at these calls of these threads. When the program is dead
 * before it is attached, nothing happens.
 */
export async function injected(
  tids: readonly number[],
  calls: readonly string[],
  what: string,
): Promise<AsyncDisposable> {
  if (tids.length === 0) throw new Error("there is no thread to trace");
  const list = calls.join(",");
  const child = spawn(
    "strace",
    [
      "-qq",
      "-o",
      "/dev/null",
      "-e",
      `trace=${list}`,
      "-e",
      `inject=${list}:${what}`,
      ...tids.flatMap((tid) => ["-p", String(tid)]),
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const exited = once(child, "exit");
  const isTraced = (tid: number): boolean =>
    /^TracerPid:\s*(\d+)/m.exec(fileOr(`/proc/${tid}/status`, "TracerPid: 1"))?.[1] !== "0";
  await until(
    "strace is attached",
    () => child.exitCode !== null || child.signalCode !== null || tids.every(isTraced),
  );
  const isThere = (tid: number): boolean => existsSync(`/proc/${tid}`);
  if (child.exitCode !== null && child.exitCode !== 0 && tids.some(isThere))
    throw new Error(`strace ended with ${child.exitCode}: ${said}`);
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGINT");
      await exited;
    },
  };
}

/** Until disposed, no file of the process grows beyond so many bytes: the write that would is cut short, the next one fails. */
export function fileSizeLimited(pid: number, bytes: number): Disposable {
  const limit = (value: string): void => {
    spawnSync("prlimit", ["--pid", String(pid), `--fsize=${value}:`]);
  };
  limit(String(bytes));
  return { [Symbol.dispose]: () => limit("unlimited") };
}

function fileOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return otherwise;
  }
}
