// Creating a directory with its parents. Not by the `recursive` of Node's mkdir: below a file system where nothing can be created (/proc) it never returns.

import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { systemCode } from "../core/faults.ts";

/** The topmost directory that was made; undefined where all were there. Throws what the file system says, ENOTDIR where a file is in the way. */
export function makeDirectories(path: string, mode = 0o700): string | undefined {
  const missing: string[] = [];
  for (let at = resolve(path); !isThere(at); at = dirname(at)) missing.push(at);
  for (const at of missing.toReversed()) {
    try {
      mkdirSync(at, { mode });
    } catch (error) {
      // Another process may have been faster.
      if (systemCode(error) !== "EEXIST" || !isThere(at)) throw error;
    }
  }
  return missing.at(-1);
}

function isThere(path: string): boolean {
  try {
    if (statSync(path).isDirectory()) return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false;
    throw error;
  }
  throw Object.assign(new Error(`ENOTDIR: ${path} is not a directory`), { code: "ENOTDIR" });
}
