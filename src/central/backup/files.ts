// Files of a backup, taken and brought back: linked or copied, each durable, and digested as it goes.

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, open, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ensureDirectory, syncDirectory } from "../../base/durable-file.ts";

const pieceBytes = 2 ** 20;

/** Digests a file. Throws what the disk throws, and the reason that `stop` was aborted with. */
export async function digestFile(
  path: string,
  stop: AbortSignal,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  await using file = await open(path, "r");
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(pieceBytes);
  for (let bytes = 0; ;) {
    stop.throwIfAborted();
    const { bytesRead } = await file.read(piece, 0, pieceBytes, null);
    if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
    hash.update(piece.subarray(0, bytesRead));
    bytes += bytesRead;
  }
}

/**
 * Copies a file and syncs it; for its directory see `Directories`. Where the file system can, the copy shares
 * blocks until one of the two is written to.
 */
export async function copyDurable(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  await using file = await open(to, "r+");
  await file.chmod(0o600);
  await file.sync();
}

/** Gives a file that is never written again another name, or copies it. */
export async function linkOrCopy(from: string, to: string): Promise<"linked" | "copied"> {
  try {
    await link(from, to);
    return "linked";
  } catch (error) {
    if (!isForeign(error)) throw error;
  }
  await copyDurable(from, to);
  return "copied";
}

/**
 * Returns whether a link is impossible: another disk, a file system without links, a file of another owner,
 * or one with too many names.
 */
function isForeign(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return ["EXDEV", "EPERM", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "ENOSYS"].includes(code);
}

/** Directories that are being filled: made once, and synced at the end, when all their files are there. */
export class Directories {
  readonly #made = new Set<string>();

  async of(path: string): Promise<void> {
    const directory = dirname(path);
    if (this.#made.has(directory)) return;
    await ensureDirectory(directory);
    this.#made.add(directory);
  }

  async sync(): Promise<void> {
    for (const directory of this.#made) await syncDirectory(directory);
  }
}

/**
 * Returns the paths of all files below, relative to `root`, sorted; none if there is no such directory. Names
 * that begin with a dot, and `tmp`, are work in progress and left out.
 */
export async function filesBelow(root: string, below = ""): Promise<readonly string[]> {
  const entries = await readdir(join(root, below), { withFileTypes: true }).catch(
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
      throw error;
    },
  );
  const found: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith(".") || entry.name === "tmp") continue;
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) found.push(...(await filesBelow(root, path)));
    else if (entry.isFile()) found.push(path);
  }
  return found.sort();
}
