/**
 * Another cache as a process of its own, for one comparison: its version, its start in a temporary directory on loopback, the ways it has of
 * clearing, and its end whatever happens. Templates lie beside this file; `{{name}}` in them is filled in.
 */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { request as undiciRequest } from "undici";
import { inParallel } from "../../test/support/demo.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import { tempDir } from "../../test/support/temp-dir.ts";
import { until } from "../../test/support/until.ts";

export type ScopeName = "one" | "under" | "all";
export const scopes: readonly ScopeName[] = ["one", "under", "all"];

export type Runnable = {
  readonly by: string;
  /** What an operator would have to wait for between two of them; not part of what is measured. */
  readonly prepare?: () => Promise<void>;
  /** Resolves when the cache has said that it is done. */
  readonly run: (target: string, urls: readonly string[]) => Promise<void>;
};
export type Command = Runnable | { readonly cannot: string };

/** One way of clearing: one URL, all beneath a directory, everything. */
export type Way = { readonly name: string } & Readonly<Record<ScopeName, Command>>;

export type RunningPeer = AsyncDisposable & {
  readonly url: string;
  /** What visitors send as Host; the URL's own without it. */
  readonly host?: string;
  readonly ways: readonly Way[];
};

export type Peer = {
  readonly name: string;
  /** Its version, or why it cannot be compared here. */
  readonly find: () => { readonly version: string } | { readonly missing: string };
  readonly start: (originPort: number) => Promise<RunningPeer>;
};

const purgeConnections = 8;
const readyWithinMs = 30_000;
const endWithinMs = 5_000;

/** The first match of `pattern` in what the command says about itself. */
export function findVersion(
  command: readonly [string, ...string[]],
  pattern: RegExp,
): ReturnType<Peer["find"]> {
  const [file, ...args] = command;
  try {
    // Some tell it on stderr.
    const said = execFileSync("sh", ["-c", 'exec "$0" "$@" 2>&1', file, ...args], {
      encoding: "utf8",
    });
    return { version: pattern.exec(said)?.[1] ?? "of unknown version" };
  } catch {
    return { missing: "not installed" };
  }
}

/** Processes in groups of their own, so that an end by a signal must end them too. */
const groups = new Set<number>();
process.on("exit", () => {
  for (const group of groups) killGroup(group, "SIGKILL");
});

function killGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    groups.delete(group); // It has ended.
  }
}

/** A temporary directory of the user that the peer will run as: most refuse to work as root. */
export class PeerGround implements AsyncDisposable {
  readonly #temp = tempDir();
  readonly #owner = process.getuid?.() === 0 ? idsOf("nobody") : undefined;
  readonly port: number;
  readonly #originPort: number;
  readonly #children: ChildProcess[] = [];
  #said = "";

  private constructor(port: number, originPort: number) {
    this.port = port;
    this.#originPort = originPort;
    this.#own(this.dir);
  }

  static async open(originPort: number): Promise<PeerGround> {
    const [port = 0] = await freePorts(1);
    return new PeerGround(port, originPort);
  }

  get dir(): string {
    return this.#temp.path;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Of the program that was started first; 0 before. */
  get pid(): number {
    return this.#children[0]?.pid ?? 0;
  }

  get user(): string {
    return this.#owner === undefined ? userInfo().username : "nobody";
  }

  makeDir(name: string): string {
    const path = join(this.dir, name);
    mkdirSync(path);
    this.#own(path);
    return path;
  }

  /** Fills in a template that lies beside this file; the path of the result. */
  write(template: string, name: string, more: Readonly<Record<string, string>> = {}): string {
    return this.writeText(readFileSync(join(import.meta.dirname, template), "utf8"), name, more);
  }

  writeText(text: string, name: string, more: Readonly<Record<string, string>> = {}): string {
    const values: Readonly<Record<string, string>> = {
      dir: this.dir,
      port: String(this.port),
      origin_port: String(this.#originPort),
      user: this.user,
      group: execFileSync("id", ["-gn", this.user], { encoding: "utf8" }).trim(),
      ...more,
    };
    const path = join(this.dir, name);
    writeFileSync(
      path,
      text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
        const value = values[key];
        if (value === undefined) throw new Error(`${name}: nothing is known as ${key}`);
        return value;
      }),
    );
    this.#own(path);
    return path;
  }

  /** Starts the peer in the foreground; resolves when it answers. */
  async run(command: readonly [string, ...string[]], env: NodeJS.ProcessEnv = {}): Promise<void> {
    const [file, ...args] = command;
    const child = spawn(file, args, {
      cwd: this.dir,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    this.#children.push(child);
    if (child.pid !== undefined) groups.add(child.pid);
    const hear = (chunk: Buffer): void => {
      this.#said = (this.#said + chunk.toString()).slice(-4_000);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", (error) => hear(Buffer.from(String(error))));
    const answers = async (): Promise<boolean> => {
      if (child.exitCode !== null) return true;
      const { statusCode, body } = await undiciRequest(`${this.url}/ready`);
      await body.dump();
      return statusCode < 500;
    };
    await until(`${file} answers`, answers, readyWithinMs).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.#said}`, { cause: error });
    });
    if (child.exitCode !== null)
      throw new Error(`${file} ended with ${child.exitCode}\n${this.#said}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      const { pid } = child;
      if (pid === undefined) continue;
      const ended = child.exitCode === null ? once(child, "exit") : Promise.resolve();
      killGroup(pid, "SIGTERM");
      const late = setTimeout(() => killGroup(pid, "SIGKILL"), endWithinMs);
      await ended;
      clearTimeout(late);
      killGroup(pid, "SIGKILL"); // Children that outlived it.
      groups.delete(pid);
    }
    this.#temp[Symbol.dispose]();
  }

  #own(path: string): void {
    if (this.#owner !== undefined) chownSync(path, this.#owner.uid, this.#owner.gid);
  }
}

function idsOf(user: string): { readonly uid: number; readonly gid: number } {
  const id = (flag: string): number =>
    Number(execFileSync("id", [flag, user], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** A request of the operator; an answer that the URL is not cached is one too. */
export async function command(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  // PURGE and BAN are no methods of the type, but all servers compared here know them.
  const { statusCode, body } = await undiciRequest(url, {
    method: method as "GET",
    headers,
  });
  await body.dump();
  if (statusCode !== 200 && statusCode !== 404 && statusCode !== 412)
    throw new Error(`${method} ${url} answered ${statusCode}`);
}

/** A request for one URL; for a directory, one for each of its URLs, as an operator's script does it. */
export function purging(purge: (target: string) => Promise<void>): Pick<Way, "one" | "under"> {
  return {
    one: { by: "a purge", run: purge },
    under: {
      by: "a purge for each",
      run: (_, urls) => inParallel(urls, purgeConnections, purge),
    },
  };
}
