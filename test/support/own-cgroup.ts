// A cgroup for what is started and all that it starts. Two systems that boot on one host would otherwise take the same cgroups for their units, and each would remove those of the
// other: "Failed to attach to cgroup".

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

const mounts = "/sys/fs/cgroup";

export class OwnCgroup implements Disposable {
  readonly #dirs: readonly string[];

  private constructor(dirs: readonly string[]) {
    this.#dirs = dirs;
  }

  /** Makes it below this process's own, in each hierarchy that systemd keeps units in and that may be written. */
  static make(name: string): OwnCgroup {
    const dirs = ownPaths().map((path) => join(path, name));
    return new OwnCgroup(dirs.filter(isMade));
  }

  /** Returns a line of shell that moves the shell into it. */
  get enter(): string {
    return this.#dirs.map((dir) => `echo $$ > ${dir}/cgroup.procs`).join("\n");
  }

  /** Removes it. What still runs in it keeps it there. */
  [Symbol.dispose](): void {
    for (const dir of this.#dirs) removeTree(dir);
  }
}

/** Where this process is: systemd's own hierarchy (v1), and the unified one (v2), which has a mount of its own beside it. */
function ownPaths(): readonly string[] {
  const lines = readFileSync("/proc/self/cgroup", "utf8").split("\n");
  return lines.flatMap((line) => {
    const [, controllers = "?", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === "name=systemd") return [join(mounts, "systemd", path)];
    return controllers === "" ? [join(mounts, "unified", path), join(mounts, path)] : [];
  });
}

function isMade(dir: string): boolean {
  try {
    mkdirSync(dir);
  } catch {
    return false; // There is no such hierarchy, or it may not be written.
  }
  if (existsSync(join(dir, "cgroup.procs"))) return true;
  rmdirSync(dir); // A folder and no cgroup.
  return false;
}

function removeTree(dir: string): void {
  try {
    for (const entry of readdirSync(dir, { withFileTypes: true }))
      if (entry.isDirectory()) removeTree(join(dir, entry.name));
    rmdirSync(dir);
  } catch {
    // A process is in it, or it is gone.
  }
}
