// Writes files that survive power loss: write, fsync, rename, fsync of the directory. Every durable file of
// both programs is written here.

import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { mkdirSync, statSync } from "node:fs";
import { systemCode } from "../core/faults.ts";

/**
 * Replaces `path` atomically: readers and the next boot see the whole old content or the whole new one. A
 * failure leaves no temporary file. `owner`: whose the file is to be, where root writes it.
 */
export async function writeDurable(
  path: string,
  data: string | Uint8Array,
  mode = 0o600,
  owner?: { readonly uid: number; readonly gid: number },
): Promise<void> {
  const staged = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    {
      await using file = await open(staged, "wx", mode);
      await file.writeFile(data);
      if (owner !== undefined) await file.chown(owner.uid, owner.gid);
      await file.sync();
    }
    await renameDurable(staged, path);
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

/** Renames a file durably. The source must be synced already. */
export async function renameDurable(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncDirectory(dirname(to));
}

/** Syncs a directory. Otherwise power loss can undo a rename, a creation or an unlink in it. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}

/** Creates the directory and its parents, each durable in its parent. */
export async function ensureDirectory(path: string, mode = 0o700): Promise<void> {
  const made = makeDirectories(path, mode);
  if (made === undefined) return;
  for (let at = resolve(path); at !== dirname(resolve(made)); at = dirname(at))
    await syncDirectory(dirname(at));
}

// Creates a directory with its parents. Node's own `recursive` mkdir never returns below a file system where
// nothing can be created (/proc).

/**
 * Returns the topmost directory that was made, or undefined if all were there. Throws what the file system
 * says, ENOTDIR if a file is in the way.
 */
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
