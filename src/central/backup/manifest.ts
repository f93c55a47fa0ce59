// What a backup says about itself: `manifest.json`, written last, so that a directory without it is no
// backup.
//
//   <backup>/manifest.json        this
//   <backup>/central.db           the store at one moment
//   <backup>/blobs/aa/<sha256>    what that store has rows of; named by digest, so they are not listed here
//   <backup>/packages/…           uploaded packages
//                                 both are absent where they lie in a bucket, which keeps what the store names
//   <backup>/logs/<day>.db        request logs, from just before that moment
//   <backup>/analytics.db         numbers of requests, where there are any
//   <backup>/central.key          only where it was asked for
// While a backup is being made, the directory is called `<backup>.unfinished-<random>`.

import { join } from "node:path";
import { readFile } from "node:fs/promises";
import { AccelError, messageOf } from "../../core/faults.ts";

/** `path` is relative to the backup, with `/`. */
export type BackupFile = {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
};

export type BackupManifest = {
  readonly format: typeof manifestFormat;
  /** The release of accel-central. */
  readonly release: string;
  readonly when_begun: string;
  readonly when_finished: string;
  /** The epoch of the store that was backed up. */
  readonly epoch: string;
  readonly with_key: boolean;
  /** Whether blobs and packages are in a bucket, and not in the backup. Absent in backups of earlier releases, where they are in it. */
  readonly objects_in_bucket?: boolean;
  readonly files: readonly BackupFile[];
  readonly blobs: {
    readonly count: number;
    readonly bytes: number;
    /** Digests of the blobs that the disk had lost already. */
    readonly lost: readonly string[];
  };
};

export const manifestFormat = "accel-central-backup/1";
export const manifestName = "manifest.json";
export const storeName = "central.db";
export const numbersName = "analytics.db";
export const keyName = "central.key";

/** Reads a manifest. Throws BACKUP_DAMAGED if there is no finished backup. */
export async function readBackupManifest(directory: string): Promise<BackupManifest> {
  const path = join(directory, manifestName);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    const what = `${directory} has no ${manifestName}: it is not a backup, or an unfinished one`;
    throw new AccelError("BACKUP_DAMAGED", `${what} (${messageOf(error)})`);
  });
  const damaged = (why: string): AccelError =>
    new AccelError("BACKUP_DAMAGED", `${path} is damaged: ${why}`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw damaged(messageOf(error));
  }
  const manifest = parseManifest(parsed);
  if (manifest === undefined) throw damaged(`it is not of the format ${manifestFormat}`);
  return manifest;
}

function parseManifest(raw: unknown): BackupManifest | undefined {
  const { format, release, when_begun, when_finished, epoch, with_key, files, blobs } = fields(raw);
  const { objects_in_bucket: inBucket = false } = fields(raw);
  const { count, bytes, lost } = fields(blobs);
  const texts = [release, when_begun, when_finished, epoch].every((one) => typeof one === "string");
  const numbers = [count, bytes].every((one) => Number.isSafeInteger(one));
  const sound =
    format === manifestFormat &&
    texts &&
    numbers &&
    typeof with_key === "boolean" &&
    typeof inBucket === "boolean" &&
    isListOf(lost, (one) => typeof one === "string" && /^[0-9a-f]{64}$/.test(one)) &&
    isListOf(files, isBackupFile);
  return sound ? (raw as BackupManifest) : undefined; // Every member was just checked.
}

function isBackupFile(raw: unknown): boolean {
  const { path, bytes, sha256 } = fields(raw);
  return (
    typeof path === "string" &&
    // The path must lie below the backup.
    /^[\w+!~-][\w.+!~-]*(?:\/[\w+!~-][\w.+!~-]*)*$/.test(path) &&
    Number.isSafeInteger(bytes) &&
    typeof sha256 === "string" &&
    /^[0-9a-f]{64}$/.test(sha256)
  );
}

function isListOf(raw: unknown, isOne: (one: unknown) => boolean): boolean {
  return Array.isArray(raw) && raw.every(isOne);
}

function fields(raw: unknown): Readonly<Record<string, unknown>> {
  return raw !== null && typeof raw === "object" ? (raw as Record<string, unknown>) : {};
}
