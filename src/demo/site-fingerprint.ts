// Tells whether a site folder changed since it was imported: names, sizes and times of all files, and the
// devlove, as one digest.

import { createHash } from "node:crypto";
import { opendir, stat } from "node:fs/promises";
import { join } from "node:path";

export async function siteFingerprint(dir: string, devlove: string): Promise<string> {
  const lines: string[] = [];
  for await (const entry of await opendir(dir, { recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    const { size, mtimeMs, isFile } = await stat(path).then(
      (found) => ({ size: found.size, mtimeMs: found.mtimeMs, isFile: found.isFile() }),
      () => ({ size: 0, mtimeMs: 0, isFile: false }),
    );
    if (isFile) lines.push(`${path}\t${size}\t${mtimeMs}`);
  }
  return createHash("sha256")
    .update(devlove)
    .update(lines.sort().join("\n"))
    .digest("hex")
    .slice(0, 16);
}
