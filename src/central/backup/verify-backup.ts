// Checks a whole backup before anything is made of it: every file and blob is there and is what was backed
// up. All that is wrong is reported at once.

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { AccelError, messageOf } from "../../core/faults.ts";
import { digestFile } from "./files.ts";
import { readBackupManifest, storeName, type BackupManifest } from "./manifest.ts";
import type { StoredFacts } from "./write-backup.ts";

const findingsToldMax = 20;

export type VerifiedBackup = {
  readonly manifest: BackupManifest;
  /** Relative paths of the files to bring back. */
  readonly paths: readonly string[];
  readonly bytes: number;
};

/** Verifies a backup. Throws BACKUP_DAMAGED naming each file at fault, and why. */
export async function verifyBackup(
  directory: string,
  stored: StoredFacts,
  stop: AbortSignal,
): Promise<VerifiedBackup> {
  const manifest = await readBackupManifest(directory);
  const verifying = new Verifying(directory, stop);
  for (const file of manifest.files) await verifying.file(file.path, file);
  const { count, lost } = manifest.blobs;
  if (verifying.findings.length === 0) {
    // Only now is it known that the store's rows can be believed.
    const known = new Set(lost);
    let found = 0;
    for await (const rows of stored.blobs(join(directory, storeName)))
      for (const { sha256, size } of rows) {
        if (known.has(sha256)) continue;
        await verifying.file(`blobs/${sha256.slice(0, 2)}/${sha256}`, { bytes: size, sha256 });
        found++;
      }
    if (found !== count)
      verifying.findings.push(
        `${storeName} has rows of ${found} blobs, the manifest says ${count}`,
      );
  }
  const { findings } = verifying;
  if (findings.length > 0) {
    const told = findings.slice(0, findingsToldMax).map((finding) => `\n  ${finding}`);
    const more =
      findings.length > told.length ? `\n  and ${findings.length - told.length} more` : "";
    throw new AccelError(
      "BACKUP_DAMAGED",
      `the backup ${directory} is damaged:${told.join("")}${more}`,
    );
  }
  return { manifest, paths: verifying.paths, bytes: verifying.bytes };
}

class Verifying {
  readonly findings: string[] = [];
  readonly paths: string[] = [];
  bytes = 0;
  readonly #directory: string;
  readonly #stop: AbortSignal;

  constructor(directory: string, stop: AbortSignal) {
    this.#directory = directory;
    this.#stop = stop;
  }

  async file(
    path: string,
    { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
  ): Promise<void> {
    const wrong = await this.#wrong(path, bytes, sha256);
    if (wrong !== undefined) this.findings.push(`${path}: ${wrong}`);
    this.paths.push(path);
    this.bytes += bytes;
  }

  async #wrong(path: string, bytes: number, sha256: string): Promise<string | undefined> {
    const whole = join(this.#directory, path);
    try {
      const { size } = await stat(whole);
      if (size < bytes) return `cut off at byte ${size} of ${bytes}`;
      if (size > bytes) return `has ${size} bytes, ${bytes} were backed up`;
      const found = await digestFile(whole, this.#stop);
      if (found.sha256 === sha256) return undefined;
      return `its content differs: its digest is ${found.sha256}, ${sha256} was backed up`;
    } catch (error) {
      this.#stop.throwIfAborted();
      const isGone = error instanceof Error && "code" in error && error.code === "ENOENT";
      return isGone ? "is missing" : messageOf(error);
    }
  }
}
