// The file operations of the spool, few and synchronous. Its thread waits for the disk so that no other
// thread has to; the pool behind asynchronous operations is shared by all threads. They are a port so that
// tests can make a disk fail at any step.

import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { diskSpaceOf } from "../../../base/disk-space.ts";
import { systemCode } from "../../../core/faults.ts";

/** The operations. All of them throw the system's errors. */
export type SpoolFiles = {
  ensureDirectory(path: string): void;
  list(path: string): readonly string[];
  /** `names`: how many the file has. */
  stat(path: string): {
    readonly bytes: number;
    readonly modifiedMs: number;
    readonly names: number;
  };
  /** What the file system has left for this user. */
  freeBytes(path: string): number;
  /** Creates a file and opens it for writing; throws EEXIST if it exists. */
  create(path: string): number;
  /** Opens an existing file for writing. */
  open(path: string): number;
  /** May write less than all of `bytes`; returns how much. */
  write(file: number, bytes: Uint8Array, at: number): number;
  truncate(file: number, bytes: number): void;
  datasync(file: number): void;
  close(file: number): void;
  /** Reads from `from` to the end, or to `to`; less if the file is shorter. */
  read(path: string, from: number, to?: number): Uint8Array<ArrayBuffer>;
  rename(from: string, to: string): void;
  /** Gives a file a second name; throws EEXIST if something has it. */
  link(path: string, to: string): void;
  unlink(path: string): void;
  /** Makes a directory so large that many names more need no block: ext4 keeps the blocks of names that went. */
  widenDirectory(path: string): void;
  /** Makes creations, renames and unlinks in the directory durable. */
  syncDirectory(path: string): void;
};

/** Several starts of an agent with many lanes. */
const widenedNames = 1_000;
const segmentNameLength = 44;

export const diskFiles: SpoolFiles = {
  ensureDirectory(path) {
    const made = mkdirSync(path, { recursive: true, mode: 0o700 });
    if (made !== undefined) this.syncDirectory(dirname(made));
  },
  list: (path) => readdirSync(path),
  stat(path) {
    const { size, mtimeMs, nlink } = statSync(path);
    return { bytes: size, modifiedMs: mtimeMs, names: nlink };
  },
  freeBytes: (path) => diskSpaceOf(path)?.free ?? 0,
  create: (path) => openSync(path, "wx", 0o600),
  open: (path) => openSync(path, "r+"),
  write: (file, bytes, at) => writeSync(file, bytes, 0, bytes.byteLength, at),
  truncate: ftruncateSync,
  datasync: fdatasyncSync,
  close: closeSync,
  read(path, from, to) {
    const file = openSync(path, "r");
    try {
      const end = Math.min(to ?? Number.MAX_SAFE_INTEGER, statSync(path).size);
      const bytes = new Uint8Array(Math.max(0, end - from));
      let read = 0;
      while (read < bytes.byteLength) {
        const count = readSync(file, bytes, read, bytes.byteLength - read, from + read);
        if (count === 0) break;
        read += count;
      }
      return read === bytes.byteLength ? bytes : bytes.slice(0, read);
    } finally {
      closeSync(file);
    }
  },
  rename: renameSync,
  link: linkSync,
  unlink: unlinkSync,
  widenDirectory(path) {
    const names = Array.from({ length: widenedNames }, (_, no) =>
      join(path, `widened-${String(no).padStart(segmentNameLength, "0")}`),
    );
    for (const name of names) closeSync(openSync(name, "w", 0o600));
    for (const name of names) unlinkSync(name);
    this.syncDirectory(path);
  },
  syncDirectory(path) {
    const directory = openSync(path, "r");
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  },
};

/** Writes all of it; a short write is continued. */
export function writeWhole(files: SpoolFiles, file: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.byteLength;) {
    const wrote = files.write(file, bytes.subarray(done), at + done);
    if (wrote <= 0) throw new Error("the disk takes no more bytes");
    done += wrote;
  }
}

export const stagedPath = (path: string): string => `${path}.tmp`;

/**
 * Writes durably what is to replace the file by a rename, and returns under which name. Nothing is left
 * behind when it throws, if the disk allows.
 */
export function stageFile(files: SpoolFiles, path: string, bytes: Uint8Array): string {
  const staged = stagedPath(path);
  unlinkIfThere(files, staged);
  try {
    const file = files.create(staged);
    try {
      writeWhole(files, file, bytes, 0);
      files.datasync(file);
    } finally {
      files.close(file);
    }
    return staged;
  } catch (error) {
    attempt(() => files.unlink(staged));
    throw error;
  }
}

/** Runs a step and returns whether it did not throw; for steps on whose success nothing depends. */
export function attempt(step: () => void): boolean {
  try {
    step();
    return true;
  } catch {
    return false;
  }
}

export function unlinkIfThere(files: SpoolFiles, path: string): void {
  try {
    files.unlink(path);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
}

/** The error of a file that takes no more, as of a full disk. */
export class NoRoom extends Error {
  readonly code = "ENOSPC";
}

/** Whether an error says that the disk or a quota is full, or that the largest file size is reached. */
export function isDiskFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "EFBIG"].includes(systemCode(error) ?? "");
}
