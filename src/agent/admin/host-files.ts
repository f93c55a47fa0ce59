// The host as node-collectors reads it.

import { readFileSync, statfsSync } from "node:fs";
import { hostname, machine, release, type as sysname } from "node:os";
import type { HostFiles } from "./node-collectors.ts";

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined; // A collector whose file is missing has no samples: that is its answer.
  }
}

export function hostFiles(now: () => Date): HostFiles {
  return {
    proc: (name) => attempt(() => readFileSync(`/proc/${name}`, "utf8")),
    space: (mountPoint) =>
      attempt(() => {
        const { bsize, blocks, bfree, bavail } = statfsSync(mountPoint);
        return { sizeBytes: blocks * bsize, freeBytes: bfree * bsize, availBytes: bavail * bsize };
      }),
    nowS: now().getTime() / 1_000,
    uname: { sysname: sysname(), release: release(), nodename: hostname(), machine: machine() },
  };
}
