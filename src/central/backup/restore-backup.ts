// Makes a state directory from a backup.
//
//   <state_dir>/restore.unfinished   there from before the first file until all of it is durable: central does not start beside it, and the next restore
//                                    clears away what the one before had brought
//
// What is restored is copied, never linked: central writes to it, and the backup stays what it is.

import { existsSync } from "node:fs";
import { readdir, rm, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ensureDirectory, syncDirectory, writeDurable } from "../../base/durable-file.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import { copyDurable, Directories } from "./files.ts";
import { keyName, storeName } from "./manifest.ts";
import { verifyBackup, type VerifiedBackup } from "./verify-backup.ts";
import type { StoredFacts } from "./write-backup.ts";

const markerName = "restore.unfinished";
/** The lock of the state directory, which is not part of what is restored. */
const lockName = "lock";

export type RestoreOptions = {
  readonly from: string;
  /** The state directory, locked by the caller; it holds nothing but perhaps the key file. */
  readonly stateDir: string;
  readonly keyFile: string;
  /** The name of the file beside the request logs that tells their store of the restore. */
  readonly logsMark: string;
  readonly stored: StoredFacts;
  /** Gives the store another epoch. It opens the store as central does, which brings it to this release. */
  readonly begin: (store: string, backup: { readonly when: string }) => Promise<{ epoch: string }>;
  /** Throws if the key is not that of the store. */
  readonly tryKey: (store: string, keyFile: string) => Promise<void>;
  readonly now: () => Date;
  readonly stop: AbortSignal;
};

export type RestoreFacts = {
  readonly state_dir: string;
  readonly backup_of: string;
  readonly release_of_backup: string;
  readonly epoch_before: string;
  readonly epoch: string;
  readonly files: number;
  readonly bytes: number;
  readonly blobs_lost_before: number;
  /** Whether blobs and packages are in a bucket, and not in the backup. */
  readonly objects_in_bucket: boolean;
  readonly key: "restored" | "was here" | "missing" | "another";
};

/** Throws if a restore was begun in the directory and not finished: it holds only a part of a store. */
export function refuseUnfinished(stateDir: string): void {
  if (existsSync(join(stateDir, markerName)))
    throw new AccelError("RESTORE_UNFINISHED", `a restore into ${stateDir} was cut off`);
}

/**
 * Restores a backup. Throws BACKUP_DAMAGED before anything is written, or RESTORE_FAILED after emptying the
 * directory again.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreFacts> {
  const { from, stateDir, stored, stop } = options;
  await clearAway(options);
  await refuseUsed(options);
  const verified = await verifyBackup(from, stored, stop);
  await refuseTight(stateDir, verified);
  await writeDurable(join(stateDir, markerName), `${options.now().toISOString()} ${from}\n`);
  try {
    const facts = await bringBack(options, verified);
    await rm(join(stateDir, markerName));
    await syncDirectory(stateDir);
    return facts;
  } catch (error) {
    await clearAway(options).catch(() => undefined); // The marker then stays, and says so.
    if (error instanceof AccelError) throw error;
    const text = `${from} was not restored: ${messageOf(error)}`;
    throw new AccelError("RESTORE_FAILED", text, { cause: error });
  }
}

async function bringBack(options: RestoreOptions, verified: VerifiedBackup): Promise<RestoreFacts> {
  const { from, stateDir, logsMark, now, stop } = options;
  const { manifest, paths, bytes } = verified;
  const directories = new Directories();
  for (const path of paths) {
    stop.throwIfAborted();
    if (path === keyName) continue;
    const to = join(stateDir, path);
    await directories.of(to);
    await copyDurable(join(from, path), to);
  }
  const logs = join(stateDir, "logs", logsMark);
  await directories.of(logs);
  const told = { when_restored: now().toISOString(), when_backed_up: manifest.when_begun };
  await writeDurable(logs, `${JSON.stringify(told)}\n`);
  await directories.sync();
  const store = join(stateDir, storeName);
  const { epoch } = await options.begin(store, { when: manifest.when_begun });
  return {
    state_dir: stateDir,
    backup_of: manifest.when_begun,
    release_of_backup: manifest.release,
    epoch_before: manifest.epoch,
    epoch,
    files: paths.length,
    bytes,
    blobs_lost_before: manifest.blobs.lost.length,
    objects_in_bucket: manifest.objects_in_bucket ?? false,
    key: await bringKey(options, manifest.with_key, store),
  };
}

async function bringKey(
  { from, keyFile, tryKey }: RestoreOptions,
  isInBackup: boolean,
  store: string,
): Promise<RestoreFacts["key"]> {
  const wasHere = existsSync(keyFile);
  if (!wasHere && isInBackup) {
    await ensureDirectory(dirname(keyFile));
    await copyDurable(join(from, keyName), keyFile);
    await syncDirectory(dirname(keyFile));
  }
  if (!existsSync(keyFile)) return "missing";
  try {
    await tryKey(store, keyFile);
  } catch (error) {
    if (error instanceof AccelError) return "another";
    throw error;
  }
  return wasHere ? "was here" : "restored";
}

/** Removes what a restore that was cut off had brought. */
async function clearAway({ stateDir, keyFile }: RestoreOptions): Promise<void> {
  if (!existsSync(join(stateDir, markerName))) return;
  for (const name of await foreignNames(stateDir, keyFile))
    if (name !== markerName) await rm(join(stateDir, name), { recursive: true, force: true });
  await syncDirectory(stateDir);
  await rm(join(stateDir, markerName));
  await syncDirectory(stateDir);
}

async function refuseUsed({ stateDir, keyFile }: RestoreOptions): Promise<void> {
  const [name] = await foreignNames(stateDir, keyFile);
  if (name !== undefined)
    throw new AccelError(
      "USAGE",
      `${stateDir} is not empty, it has ${name}: a backup is restored into an empty state directory`,
    );
}

async function foreignNames(stateDir: string, keyFile: string): Promise<readonly string[]> {
  const own = new Set([lockName, "lost+found"]);
  if (dirname(keyFile) === stateDir) own.add(basename(keyFile));
  return (await readdir(stateDir)).filter((name) => !own.has(name));
}

async function refuseTight(stateDir: string, { bytes }: VerifiedBackup): Promise<void> {
  const { bavail, bsize } = await statfs(stateDir);
  if (bavail * bsize < bytes)
    throw new AccelError(
      "RESTORE_FAILED",
      `${stateDir} has room for ${bavail * bsize} bytes, the backup has ${bytes}`,
    );
}
