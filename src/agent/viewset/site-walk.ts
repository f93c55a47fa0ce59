// Lists the files of a site's directory as they would be served: sorted, without hidden ones, with links
// followed as long as they end inside the root.
//
// A link that leads outside, nowhere, or back above itself is left out and named, for nothing is served
// through it either. A file that cannot be read or named is a failure, for a site that silently lacks files
// is worse than none. What vanishes during the walk counts as absent. Names are resolved from the root
// (base/below-root.ts): a directory that is swapped for a link shows nothing of the outside.

import { isUtf8 } from "node:buffer";
import type { BigIntStats, Dirent } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { identityOf, type Found, type Root } from "../../base/below-root.ts";
import { caseCollisions, describeCollision } from "../../core/case-collisions.ts";
import { AccelError, systemCode } from "../../core/faults.ts";
import { quotedPath } from "../../core/quoted-path.ts";
import { boundedLine } from "./devlove-text.ts";
import { inParallel } from "./parallel.ts";

/** The place of a site, as in the settings. */
export type SiteLocation = {
  readonly domain: string;
  readonly views_dir: string;
  readonly devlove_file: string;
  /** Whether names that differ only in case are intended, so that an import takes them. */
  readonly paths_differ_in_case?: boolean | undefined;
};

export type WalkedFile = {
  /** The path below the root, with `/` between segments. */
  readonly path: string;
  readonly size: number;
  /** Changes when the content changes, or what the path leads to. */
  readonly identity: string;
};

export type SiteWalk = {
  /** Ascending by path. */
  readonly files: readonly WalkedFile[];
  /** Links that were not followed, with the reason. */
  readonly leftOut: readonly string[];
};

export type SiteWalkOptions = {
  readonly root: Root;
  /** The views directory as reasons call it. */
  readonly viewsDir: string;
  /** A file that is not part of the site, whatever its name. */
  readonly except: Pick<BigIntStats, "dev" | "ino"> | undefined;
  /** Whether names of one directory that differ only in case are intended. */
  readonly pathsDifferInCase: boolean;
  /** Called with each file, in any order; the returned list is then empty. */
  readonly onFile?: (file: WalkedFile) => void;
  readonly signal: AbortSignal;
};

type Directory = {
  /** The path below the root with a trailing slash; "" for the root. */
  readonly prefix: string;
  /** The places of the directories above it. */
  readonly above: ReadonlySet<string>;
};

/** The most files, as the manifest's schema says. */
const filesMax = 2_000_000;
const pathCharsMax = 4096;
/**
 * The most directories. Links between directories can make more paths out of a few files than anyone can
 * read.
 */
const directoriesMax = 200_000;
const directoriesAtOnce = 8;
const entriesAtOnce = 8;
const collisionsAdvice =
  "If both are intended, set paths_differ_in_case of this site (setting sites)";
const vanished: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

/** Whether a name is hidden. `.well-known` (RFC 8615) is not, despite its dot. */
export function isHidden(name: string): boolean {
  return name.startsWith(".") && name !== ".well-known";
}

/** Walks a site. Throws IMPORT_IMPOSSIBLE naming what cannot be read. */
export async function walkSite(options: SiteWalkOptions): Promise<SiteWalk> {
  return new Walk(options).run();
}

class Walk {
  readonly #options: SiteWalkOptions;
  readonly #files: WalkedFile[] = [];
  readonly #leftOut: string[] = [];
  readonly #faults: string[] = [];
  #next: Directory[] = [{ prefix: "", above: new Set() }];
  #directories = 0;
  #collide = false;
  #count = 0;

  constructor(options: SiteWalkOptions) {
    this.#options = options;
  }

  async run(): Promise<SiteWalk> {
    const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    const { viewsDir, root, signal } = this.#options;
    while (this.#next.length > 0) {
      const level = this.#next;
      this.#next = [];
      const read = async (directory: Directory): Promise<void> => this.#read(directory);
      await inParallel(level, directoriesAtOnce, read, signal);
      this.#directories += level.length;
      if (this.#count > filesMax) this.#faults.push(`there are more than ${filesMax} files`);
      if (this.#directories > directoriesMax)
        this.#faults.push(`there are more than ${directoriesMax} directories, links included`);
      if (this.#faults.length > 0) {
        const reasons = boundedLine(this.#faults.sort(byText));
        const advice = this.#collide ? `. ${collisionsAdvice}` : "";
        throw new AccelError("IMPORT_IMPOSSIBLE", `views_dir ${viewsDir}: ${reasons}${advice}`);
      }
    }
    // A directory that was deleted while we hold it looks empty.
    if (root.stats.nlink === 0n)
      throw new AccelError("IMPORT_IMPOSSIBLE", `views_dir ${viewsDir} vanished while it was read`);
    return {
      files: this.#files.sort((a, b) => byText(a.path, b.path)),
      leftOut: this.#leftOut.sort(byText),
    };
  }

  async #read({ prefix, above }: Directory): Promise<void> {
    try {
      using found = await this.#options.root.find(prefix === "" ? "." : prefix.slice(0, -1));
      if (found === undefined) this.#leaveOut(prefix.slice(0, -1), "a link out of views_dir");
      else if (above.has(found.place))
        this.#leaveOut(prefix.slice(0, -1), "a link back above itself");
      else await this.#list(prefix, found, new Set(above).add(found.place));
    } catch (error) {
      if (vanished.has(systemCode(error))) return;
      this.#options.signal.throwIfAborted();
      this.#faults.push(`${quotedPath(prefix)} ${systemReason(error)}`);
    }
  }

  async #list(prefix: string, directory: Found, above: ReadonlySet<string>): Promise<void> {
    const entries: readonly Dirent<Buffer>[] = await readdir(directory.link, {
      withFileTypes: true,
      encoding: "buffer",
    });
    const names: string[] = [];
    const visit = async (entry: Dirent<Buffer>): Promise<void> => {
      const name = entry.name.toString("utf8");
      if (isHidden(name)) return;
      const path = prefix + name;
      if (!isUtf8(entry.name))
        this.#faults.push(
          `${quotedPath(path)} has a name that is not UTF-8 (${escaped(entry.name)})`,
        );
      else if (path.length > pathCharsMax)
        this.#faults.push(`${quotedPath(path)} is longer than ${pathCharsMax} characters`);
      else if (await this.#visit(path, `${directory.link}/${name}`, entry, above)) names.push(name);
    };
    await inParallel(entries, entriesAtOnce, visit, this.#options.signal);
    if (!this.#options.pathsDifferInCase) this.#judgeCase(prefix, names.sort());
  }

  #judgeCase(prefix: string, names: readonly string[]): void {
    for (const [one, other] of caseCollisions(names) ?? []) {
      this.#collide = true;
      this.#faults.push(describeCollision([prefix + one, prefix + other]));
    }
  }

  /**
   * Visits an entry and returns whether it is part of the site, as far as can be seen from here; a directory
   * may turn out to be empty.
   */
  async #visit(
    path: string,
    full: string,
    entry: Dirent<Buffer>,
    above: ReadonlySet<string>,
  ): Promise<boolean> {
    try {
      if (entry.isDirectory()) {
        this.#next.push({ prefix: `${path}/`, above });
        return true;
      }
      // This is one name in a directory that is held open, so it cannot lead elsewhere.
      const stats = await lstat(full, { bigint: true });
      if (stats.isSymbolicLink()) return await this.#follow(path, above);
      return this.#add(path, stats, above);
    } catch (error) {
      if (!vanished.has(systemCode(error)))
        this.#faults.push(`${quotedPath(path)} ${systemReason(error)}`);
      return false;
    }
  }

  async #follow(path: string, above: ReadonlySet<string>): Promise<boolean> {
    try {
      using found = await this.#options.root.find(path);
      if (found !== undefined) return this.#add(path, found.stats, above);
      this.#leaveOut(path, "a link out of views_dir");
    } catch (error) {
      if (!vanished.has(systemCode(error))) throw error;
      this.#leaveOut(path, "a link to nothing");
    }
    return false;
  }

  #add(path: string, stats: BigIntStats, above: ReadonlySet<string>): boolean {
    const { except, onFile = (file) => this.#files.push(file) } = this.#options;
    if (except !== undefined && stats.dev === except.dev && stats.ino === except.ino) return false;
    if (stats.isDirectory()) this.#next.push({ prefix: `${path}/`, above });
    else if (stats.isFile()) {
      this.#count++;
      onFile({ path, size: Number(stats.size), identity: identityOf(stats) });
    } else this.#faults.push(`${quotedPath(path)} is neither file nor directory`);
    return true;
  }

  #leaveOut(path: string, why: string): void {
    this.#leftOut.push(`${path} (${why})`);
  }
}

/** Writes a name that is no UTF-8 so that it can be typed in a shell. */
function escaped(name: Buffer): string {
  return Array.from(name, (byte) =>
    byte > 0x20 && byte < 0x7f
      ? String.fromCodePoint(byte)
      : `\\x${byte.toString(16).padStart(2, "0")}`,
  ).join("");
}

/** Puts a system error into words that an operator can act on. */
export function systemReason(error: unknown): string {
  switch (systemCode(error)) {
    case "ENOENT":
      return "does not exist, or vanished while it was read";
    case "ENOTDIR":
      return "is no directory";
    case "EACCES":
    case "EPERM":
      return "cannot be read by the agent's user";
    case "ELOOP":
      return "is a link that leads in circles";
    case "ENAMETOOLONG":
      return "is too deep: its path is longer than the system allows";
    default:
      return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
