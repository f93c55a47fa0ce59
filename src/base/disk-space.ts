// How much room a disk has.

import { statfsSync } from "node:fs";

export type DiskSpace = {
  /** Bytes that a user who is not root may take. */
  readonly free: number;
  readonly size: number;
};

/** Returns the room on the disk of a directory; undefined where the system does not tell. */
export function diskSpaceOf(directory: string): DiskSpace | undefined {
  try {
    const { bavail, blocks, bsize } = statfsSync(directory);
    return { free: bavail * bsize, size: blocks * bsize };
  } catch {
    return undefined;
  }
}
