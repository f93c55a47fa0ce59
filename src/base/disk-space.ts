// How much room a disk has.

import { statfsSync } from "node:fs";
import { dirname } from "node:path";

export type DiskSpace = {
  /** Bytes that a user who is not root may take. */
  readonly free: number;
  readonly size: number;
  /** Files that can be made, and that there can be; undefined where the file system makes room for them as it goes. */
  readonly files?: { readonly free: number; readonly most: number } | undefined;
};

/** Returns the room on the disk of a directory; undefined where the system does not tell. */
export function diskSpaceOf(directory: string): DiskSpace | undefined {
  try {
    const { bavail, blocks, bsize, ffree, files } = statfsSync(directory);
    return {
      free: bavail * bsize,
      size: blocks * bsize,
      files: files === 0 ? undefined : { free: ffree, most: files },
    };
  } catch {
    return undefined;
  }
}

/** SQLite makes sure of one byte of each of these in `-shm`. */
const shmPageBytes = 4_096;
const shmBytes = 2 ** 15;

/**
 * Returns why a database must not be opened with a `-shm` file of its own; undefined where it may. On a disk whose blocks are smaller than a page of that file, the rest
 * of a page is a hole: on a full one, the first write into it ends the process (SIGBUS).
 */
export function whyNoSharedMemory(database: string): string | undefined {
  const { free = Infinity } = diskSpaceOf(dirname(database)) ?? {};
  return free < 2 * shmBytes && blockBytesOf(dirname(database)) < shmPageBytes
    ? `its disk has ${free} bytes free`
    : undefined;
}

const blockBytesOf = (directory: string): number => statfsSync(directory).bsize;
