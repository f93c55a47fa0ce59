// A proxy of the field as a process in front of an edge: whether it is there, its start with a configuration in a directory of its own, its end.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { tempDir } from "./temp-dir.ts";
import { until } from "./until.ts";

/** What the program says of itself; undefined where there is none. */
export function sayingOf(file: string, ...args: readonly string[]): string | undefined {
  try {
    return execFileSync("sh", ["-c", 'exec "$0" "$@" 2>&1', file, ...args], { encoding: "utf8" });
  } catch {
    return undefined;
  }
}

/** Resolves when all `ports` take connections. `config` is told the directory, `command` the path of the file that was written. */
export async function startProxy(
  ports: readonly number[],
  config: (dir: string) => string,
  command: (dir: string, path: string) => readonly [string, ...string[]],
): Promise<AsyncDisposable & { readonly pid: number }> {
  const temp = tempDir();
  const path = join(temp.path, "proxy.conf");
  writeFileSync(path, config(temp.path));
  const [file, ...args] = command(temp.path, path);
  const child = spawn(file, args, { cwd: temp.path, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)));
  const running = {
    pid: child.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, "exit");
        child.kill("SIGTERM");
        const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
        await ended;
        clearTimeout(late);
      }
      temp[Symbol.dispose]();
    },
  };
  try {
    for (const port of ports) await until(`${file} listens`, async () => isOpen(port));
  } catch (error) {
    await running[Symbol.asyncDispose]();
    throw new Error(said, { cause: error });
  }
  return running;
}

async function isOpen(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1", () => resolve(true));
  socket.once("error", () => resolve(false));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}
