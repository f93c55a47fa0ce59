// Which files a site's directory holds, as they would be served: sorted, hidden ones left out, links followed as long as they end inside the root.
//
// A link that leads outside, nowhere, or back above itself is left out and named: nothing is served through it either. What should be a file
// but cannot be read or named is a failure: a site that silently lacks files is worse than none.

import { isUtf8 } from "node:buffer";
import type { Dirent } from "node:fs";
import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { sleep } from "../../base/wait.ts";
import { AccelError } from "../../core/faults.ts";
import { oneLine } from "./devlove-text.ts";
import { inParallel } from "./parallel.ts";

export type SiteFile = {
  /** Below the root, `/` between segments. */
  readonly path: string;
  /** Absolute, without links but perhaps by now. */
  readonly source: string;
  readonly size: number;
};

export type SiteWalk = {
  /** Ascending by path. */
  readonly files: readonly SiteFile[];
  /** Links that were not followed, with the reason. */
  readonly leftOut: readonly string[];
};

type Directory = {
  /** Below the root with a trailing slash, "" for the root. */
  readonly prefix: string;
  readonly real: string;
  /** Real paths from the root to here. */
  readonly chain: ReadonlySet<string>;
};

/** As the manifest's schema says. */
const filesMax = 2_000_000;
const pathCharsMax = 4096;
const directoriesAtOnce = 8;
const entriesAtOnce = 8;
/** Time for an editor or a deployment to put back what it replaces. */
const goneWaitMs = 100;

/** RFC 8615 lives in a directory that is hidden by its name. */
export function isHidden(name: string): boolean {
  return name.startsWith(".") && name !== ".well-known";
}

/** Runs once more when what it reads has vanished just now. */
export async function onceMore<T>(action: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (codeOfSystem(error) !== "ENOENT") throw error;
    await sleep(goneWaitMs, signal);
    return action();
  }
}

/** `except`: real path of a file that is not part of the site. Throws IMPORT_IMPOSSIBLE naming what cannot be read. */
export async function walkSite(
  root: string,
  except: string,
  signal: AbortSignal,
): Promise<SiteWalk> {
  const walk = new Walk(await realRoot(root), except, signal);
  return walk.run();
}

async function realRoot(root: string): Promise<string> {
  try {
    const real = await realpath(root);
    if ((await stat(real)).isDirectory()) return real;
  } catch (error) {
    throw new AccelError("IMPORT_IMPOSSIBLE", `views_dir ${root} ${systemReason(error)}`);
  }
  throw new AccelError("IMPORT_IMPOSSIBLE", `views_dir ${root} is no directory`);
}

class Walk {
  readonly #root: string;
  readonly #except: string;
  readonly #signal: AbortSignal;
  readonly #files: SiteFile[] = [];
  readonly #leftOut: string[] = [];
  readonly #faults: string[] = [];
  #next: Directory[] = [];

  constructor(root: string, except: string, signal: AbortSignal) {
    this.#root = root;
    this.#except = except;
    this.#signal = signal;
  }

  async run(): Promise<SiteWalk> {
    const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    this.#next = [{ prefix: "", real: this.#root, chain: new Set([this.#root]) }];
    while (this.#next.length > 0) {
      const level = this.#next;
      this.#next = [];
      const read = async (directory: Directory): Promise<void> => this.#read(directory);
      await inParallel(level, directoriesAtOnce, read, this.#signal);
      if (this.#files.length > filesMax) this.#faults.push(`there are more than ${filesMax} files`);
      if (this.#faults.length > 0) {
        const reasons = oneLine(this.#faults.sort(byText));
        throw new AccelError("IMPORT_IMPOSSIBLE", `views_dir ${this.#root}: ${reasons}`);
      }
    }
    return {
      files: this.#files.sort((a, b) => byText(a.path, b.path)),
      leftOut: this.#leftOut.sort(byText),
    };
  }

  async #read(directory: Directory): Promise<void> {
    const list = async (): Promise<Dirent<Buffer>[]> =>
      readdir(directory.real, { withFileTypes: true, encoding: "buffer" });
    let entries: readonly Dirent<Buffer>[];
    try {
      entries = await onceMore(list, this.#signal);
    } catch (error) {
      this.#faults.push(`${quoted(directory.prefix)} ${systemReason(error)}`);
      return;
    }
    const visit = async (entry: Dirent<Buffer>): Promise<void> => this.#visit(directory, entry);
    await inParallel(entries, entriesAtOnce, visit, this.#signal);
  }

  async #visit(directory: Directory, entry: Dirent<Buffer>): Promise<void> {
    const name = entry.name.toString("utf8");
    if (isHidden(name)) return;
    const path = directory.prefix + name;
    if (!isUtf8(entry.name))
      this.#faults.push(`${quoted(path)} has a name that is not UTF-8 (${escaped(entry.name)})`);
    else if (path.length > pathCharsMax)
      this.#faults.push(`${quoted(path)} is longer than ${pathCharsMax} characters`);
    else {
      try {
        await this.#enter(directory, path, `${directory.real}/${name}`, entry);
      } catch (error) {
        this.#faults.push(`${quoted(path)} ${systemReason(error)}`);
      }
    }
  }

  async #enter(
    directory: Directory,
    path: string,
    full: string,
    entry: Dirent<Buffer>,
  ): Promise<void> {
    if (entry.isSymbolicLink()) await this.#follow(directory, path, full);
    else if (entry.isDirectory()) this.#descend(directory, path, full);
    else if (entry.isFile()) {
      const { size } = await onceMore(async () => lstat(full), this.#signal);
      this.#add(path, full, size);
    } else this.#faults.push(`${quoted(path)} is neither file nor directory`);
  }

  async #follow(directory: Directory, path: string, full: string): Promise<void> {
    let target: string;
    try {
      target = await realpath(full);
    } catch (error) {
      if (!["ENOENT", "ELOOP", "ENOTDIR"].includes(codeOfSystem(error) ?? "")) throw error;
      this.#leftOut.push(`${path} (a link to nothing)`);
      return;
    }
    if (target !== this.#root && !target.startsWith(`${this.#root}/`)) {
      this.#leftOut.push(`${path} (a link out of views_dir)`);
      return;
    }
    const stats = await stat(target);
    if (directory.chain.has(target)) this.#leftOut.push(`${path} (a link back above itself)`);
    else if (stats.isDirectory()) this.#descend(directory, path, target);
    else if (stats.isFile()) this.#add(path, target, stats.size);
    else this.#faults.push(`${quoted(path)} is neither file nor directory`);
  }

  #descend(directory: Directory, path: string, real: string): void {
    const chain = new Set(directory.chain).add(real);
    this.#next.push({ prefix: `${path}/`, real, chain });
  }

  #add(path: string, source: string, size: number): void {
    if (source !== this.#except) this.#files.push({ path, source, size });
  }
}

const quoted = (path: string): string => JSON.stringify(path);

/** What is no UTF-8 as it can be typed in a shell. */
function escaped(name: Buffer): string {
  return Array.from(name, (byte) =>
    byte > 0x20 && byte < 0x7f
      ? String.fromCodePoint(byte)
      : `\\x${byte.toString(16).padStart(2, "0")}`,
  ).join("");
}

export function codeOfSystem(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : undefined;
}

/** What an operator can do something about, in words. */
export function systemReason(error: unknown): string {
  switch (codeOfSystem(error)) {
    case "ENOENT":
      return "does not exist, or vanished while it was read";
    case "EACCES":
    case "EPERM":
      return "cannot be read by the agent's user";
    case "ELOOP":
      return "became a link while it was read";
    default:
      return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
