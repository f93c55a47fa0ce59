// Proves that a backup can be restored, without touching what runs: all of it is read, and what central would open is opened, in a directory that is removed again.
//
//   every file and blob has the bytes of its digest
//   the store opens, and comes to this release
//   every secret in it opens with the key
//   each day of request logs is a whole database
//
// Blobs and packages are not copied. Of the rest, one file lies in the directory at a time.

import { existsSync } from "node:fs";
import { mkdtemp, rm, statfs } from "node:fs/promises";
import { basename, join } from "node:path";
import { AccelError } from "../../core/faults.ts";
import { copyDurable } from "./files.ts";
import { keyName, storeName } from "./manifest.ts";
import { verifyBackup, type VerifiedBackup } from "./verify-backup.ts";
import type { StoredFacts } from "./write-backup.ts";

export type OpenedStore = {
  readonly customers: number;
  readonly deployment_sites: number;
  readonly domains: number;
  readonly versions: number;
};

export type DrillOptions = {
  readonly from: string;
  /** Where the directory is made that is removed at the end. */
  readonly inDirectory: string;
  /** The key file of the settings; the backup's own comes first. */
  readonly keyFile: string;
  readonly stored: StoredFacts;
  /** Opens a copy of the store as central does, and counts what is in it. */
  readonly openStore: (path: string) => Promise<OpenedStore>;
  /** Opens every secret of the store. Returns how many there are. Throws SEAL_BROKEN and STORE_KEY_WRONG. */
  readonly openSecrets: (path: string, keyFile: string) => Promise<number>;
  /** Checks a copy of a day of request logs. Returns how many records it has. Throws what is wrong with it. */
  readonly openLogs: (path: string) => Promise<number>;
  readonly stop: AbortSignal;
};

export type DrillFacts = {
  readonly backup: string;
  readonly backup_of: string;
  readonly release_of_backup: string;
  readonly files: number;
  readonly bytes: number;
  readonly blobs: number;
  readonly blobs_lost_before: number;
  /** Whether blobs and packages are in a bucket, and were not looked at. */
  readonly objects_in_bucket: boolean;
  readonly store: OpenedStore;
  /** Whose key opened the secrets; `missing` and `another`: none did. */
  readonly key: "of the backup" | "of the settings" | "missing" | "another";
  readonly secrets: number | null;
  readonly log_days: number;
  readonly log_records: number;
};

/** Throws BACKUP_DAMAGED with what is wrong, DATABASE_NEWER for a backup of a newer release, and RESTORE_FAILED where there is no room. */
export async function drillRestore(options: DrillOptions): Promise<DrillFacts> {
  const { from, inDirectory, stored, stop } = options;
  const verified = await verifyBackup(from, stored, stop);
  await refuseTight(inDirectory, verified);
  const directory = await mkdtemp(join(inDirectory, "accel-central-drill-"));
  try {
    return await openAll(options, verified, directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function openAll(
  { from, keyFile, openStore, openSecrets, openLogs, stop }: DrillOptions,
  { manifest, bytes, paths }: VerifiedBackup,
  directory: string,
): Promise<DrillFacts> {
  const path = join(directory, storeName);
  await copyDurable(join(from, storeName), path);
  const store = await openStore(path);
  const own = join(from, keyName);
  const isOwn = manifest.with_key && existsSync(own);
  const chosen = isOwn ? own : keyFile;
  const secrets = existsSync(chosen)
    ? await openSecrets(path, chosen).catch((error: unknown) => {
        if (error instanceof AccelError) return "another" as const;
        throw error;
      })
    : ("missing" as const);
  await rm(path);

  const days = manifest.files.filter(({ path: name }) => /^logs\/[\d-]+\.db$/.test(name));
  let records = 0;
  for (const { path: name } of days) {
    stop.throwIfAborted();
    const copy = join(directory, basename(name));
    await copyDurable(join(from, name), copy);
    records += await openLogs(copy).catch((error: unknown) => {
      throw new AccelError(
        "BACKUP_DAMAGED",
        `the backup ${from} is damaged:\n  ${name}: ${String(error)}`,
      );
    });
    await rm(copy);
  }
  return {
    backup: from,
    backup_of: manifest.when_begun,
    release_of_backup: manifest.release,
    files: paths.length,
    bytes,
    blobs: manifest.blobs.count,
    blobs_lost_before: manifest.blobs.lost.length,
    objects_in_bucket: manifest.objects_in_bucket ?? false,
    store,
    key: typeof secrets === "string" ? secrets : isOwn ? "of the backup" : "of the settings",
    secrets: typeof secrets === "string" ? null : secrets,
    log_days: days.length,
    log_records: records,
  };
}

async function refuseTight(directory: string, { manifest }: VerifiedBackup): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const largest = Math.max(...manifest.files.map(({ bytes }) => bytes));
  // A copy, and what its migration may add.
  if (bavail * bsize < 2 * largest)
    throw new AccelError(
      "RESTORE_FAILED",
      `${directory} has room for ${bavail * bsize} bytes, the drill needs ${2 * largest}: name another place with --in`,
    );
}
