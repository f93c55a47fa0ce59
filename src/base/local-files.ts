// Whether files change through this kernel alone.

import { statfs } from "node:fs/promises";

/** By their numbers in statfs(2): ext2 to ext4, XFS, Btrfs, F2FS, ZFS, overlayfs, tmpfs, ramfs. */
const localTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x794c7630, 0x01021994, 0x858458f6,
]);

/**
 * Returns whether a file lies on a disk, or in the memory, of this host. Elsewhere, as on NFS, the kernel may tell for a minute what the file was: only whoever opens it for reading
 * has the host asked that has it. Throws what the system throws.
 */
export async function isOfThisHost(path: string): Promise<boolean> {
  return localTypes.has((await statfs(path)).type);
}
