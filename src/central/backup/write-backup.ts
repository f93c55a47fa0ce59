// Takes a backup of a state directory that is in use, while the caller holds off the removal of files.
//
// The order is: request logs, numbers, store, blobs, packages, key, manifest, rename. Logs come first, so that they
// name no deployment site that the store does not know. Blobs and packages come after the store, which has a
// row of each only when the file is whole. Whatever is missing is reported, never passed over.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { diskSpaceOf } from "../../base/disk-space.ts";
import { syncDirectory, writeDurable } from "../../base/durable-file.ts";
import { copySqlite } from "../../base/sqlite-copy.ts";
import { isDiskFault } from "../../base/sqlite.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import { copyDurable, digestFile, Directories, filesBelow, linkOrCopy } from "./files.ts";
import {
  keyName,
  manifestFormat,
  manifestName,
  numbersName,
  storeName,
  type BackupFile,
  type BackupManifest,
} from "./manifest.ts";

/** The facts of a store's copy that a backup needs. */
export type StoredFacts = {
  readonly epoch: (path: string) => Promise<string>;
  /** Whether its blobs and packages are in a bucket; then there are none of the two below. */
  readonly objectsInBucket: (path: string) => Promise<boolean>;
  /** Every blob that the store has a row of. */
  readonly blobs: (
    path: string,
  ) => AsyncIterable<readonly { readonly sha256: string; readonly size: number }[]>;
  /** Names of the files of all packages that the store has a row of. */
  readonly packages: (path: string) => Promise<ReadonlySet<string>>;
};

export type BackupOptions = {
  readonly stateDir: string;
  /** The directory to write, which must not exist. */
  readonly target: string;
  readonly keyFile: string;
  readonly withKey: boolean;
  readonly release: string;
  readonly stored: StoredFacts;
  readonly now: () => Date;
  readonly stop: AbortSignal;
};

export type BackupFacts = {
  readonly directory: string;
  readonly when: string;
  readonly epoch: string;
  readonly store_bytes: number;
  readonly blobs: { readonly count: number; readonly bytes: number; readonly copied: number };
  /** Digests of the blobs that the disk has lost. */
  readonly lost_blobs: readonly string[];
  readonly packages: number;
  /** Whether blobs and packages are in a bucket, and not in the backup. */
  readonly objects_in_bucket: boolean;
  /** Files of the packages that the disk has lost. */
  readonly lost_packages: readonly string[];
  readonly log_days: number;
  readonly log_bytes: number;
  readonly key: "in the backup" | "not in the backup" | "missing";
};

/**
 * Writes a backup. Throws BACKUP_FAILED, and STORE_DAMAGED for a store that is not sound; then nothing is
 * left behind, unless the process is killed.
 */
export async function writeBackup(options: BackupOptions): Promise<BackupFacts> {
  const { target } = options;
  if (existsSync(target))
    throw new AccelError("USAGE", `${target} exists: a backup needs a new directory`);
  const unfinished = `${target}.unfinished-${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(unfinished, { mode: 0o700 });
    const facts = await new Writing(options, unfinished).run();
    options.stop.throwIfAborted();
    await rename(unfinished, target);
    await syncDirectory(dirname(target));
    return facts;
  } catch (error) {
    const free = diskSpaceOf(dirname(target))?.free;
    await rm(unfinished, { recursive: true, force: true });
    if (error instanceof AccelError) throw error;
    const text = `no backup was made in ${basename(target)}: ${reasonOf(error, free)}`;
    throw new AccelError("BACKUP_FAILED", text, { cause: error });
  }
}

/** Less is a full disk to SQLite: it wants some pages for memory that it shares, and tells them as an error of the disk. */
const sharedBytes = 65_536;

/** `free` is what the disk had left when it failed, bytes. */
function reasonOf(error: unknown, free = Infinity): string {
  const reason = messageOf(error);
  return isDiskFault(error) && free < sharedBytes && !/full|ENOSPC/.test(reason)
    ? `the disk is full (${reason})`
    : reason;
}

class Writing {
  readonly #options: BackupOptions;
  readonly #to: string;
  readonly #directories = new Directories();
  readonly #files: BackupFile[] = [];

  constructor(options: BackupOptions, to: string) {
    this.#options = options;
    this.#to = to;
  }

  async run(): Promise<BackupFacts> {
    const { stateDir, target, keyFile, withKey, release, stored, now, stop } = this.#options;
    const logs = await this.#logs();
    await this.#numbers();
    const begun = now().toISOString();
    const store = join(this.#to, storeName);
    await copySqlite(join(stateDir, storeName), store, { checked: true, stop });
    const { bytes } = await this.#note(storeName);
    const epoch = await stored.epoch(store);
    const objectsInBucket = await stored.objectsInBucket(store);
    const { blobs, lost } = await this.#blobs(store);
    const { packages, lost: lostPackages } = await this.#packages(store);
    const hasKey = existsSync(keyFile);
    if (withKey && hasKey) {
      await copyDurable(keyFile, join(this.#to, keyName));
      await this.#note(keyName);
    }
    await this.#directories.sync();
    const manifest: BackupManifest = {
      format: manifestFormat,
      release,
      when_begun: begun,
      when_finished: now().toISOString(),
      epoch,
      with_key: withKey && hasKey,
      objects_in_bucket: objectsInBucket,
      files: this.#files,
      blobs: { count: blobs.count, bytes: blobs.bytes, lost },
    };
    await writeDurable(join(this.#to, manifestName), `${JSON.stringify(manifest, null, 2)}\n`);
    return {
      directory: target,
      when: begun,
      epoch,
      store_bytes: bytes,
      blobs,
      lost_blobs: lost,
      packages,
      lost_packages: lostPackages,
      objects_in_bucket: objectsInBucket,
      log_days: logs.days,
      log_bytes: logs.bytes,
      key: !hasKey ? "missing" : withKey ? "in the backup" : "not in the backup",
    };
  }

  async #logs(): Promise<{ readonly days: number; readonly bytes: number }> {
    const { stateDir, stop } = this.#options;
    const total = { days: 0, bytes: 0 };
    const names = (await filesBelow(join(stateDir, "logs"))).filter((name) =>
      /^\d{4}-\d\d-\d\d\.db$/.test(name),
    );
    for (const name of names) {
      const from = join(stateDir, "logs", name);
      const path = `logs/${name}`;
      const to = join(this.#to, path);
      await this.#directories.of(to);
      try {
        await copySqlite(from, to, { checked: false, stop });
      } catch (error) {
        if (existsSync(from)) throw error;
      }
      // A day whose time is over is renamed first and then cut, so its copy is good only if it still has its
      // name.
      if (!existsSync(from)) {
        await rm(to, { force: true });
        continue;
      }
      total.days++;
      total.bytes += (await this.#note(path)).bytes;
    }
    return total;
  }

  /**
   * Copies the numbers of requests after the logs: what was folded of a day that goes meanwhile is in the copy, and days
   * that are in the backup are folded again after a restore.
   */
  async #numbers(): Promise<void> {
    const { stateDir, stop } = this.#options;
    const from = join(stateDir, numbersName);
    if (!existsSync(from)) return;
    await copySqlite(from, join(this.#to, numbersName), { checked: false, stop });
    await this.#note(numbersName);
  }

  async #blobs(
    store: string,
  ): Promise<{ readonly blobs: BackupFacts["blobs"]; readonly lost: readonly string[] }> {
    const { stateDir, stored, stop } = this.#options;
    const blobs = { count: 0, bytes: 0, copied: 0 };
    const lost: string[] = [];
    for await (const rows of stored.blobs(store))
      for (const { sha256, size } of rows) {
        stop.throwIfAborted();
        const path = join("blobs", sha256.slice(0, 2), sha256);
        const found = await stat(join(stateDir, path)).catch(() => undefined);
        if (found?.size !== size) {
          lost.push(sha256);
          continue;
        }
        await this.#directories.of(join(this.#to, path));
        const how = await linkOrCopy(join(stateDir, path), join(this.#to, path));
        if (how === "copied") blobs.copied++;
        blobs.count++;
        blobs.bytes += size;
      }
    return { blobs, lost };
  }

  async #packages(
    store: string,
  ): Promise<{ readonly packages: number; readonly lost: readonly string[] }> {
    const { stateDir, stored, stop } = this.#options;
    const lost: string[] = [];
    let packages = 0;
    for (const name of await stored.packages(store)) {
      stop.throwIfAborted();
      const path = `packages/${name}`;
      if (!existsSync(join(stateDir, path))) {
        lost.push(name);
        continue;
      }
      await this.#directories.of(join(this.#to, path));
      await linkOrCopy(join(stateDir, path), join(this.#to, path));
      await this.#note(path);
      packages++;
    }
    return { packages, lost };
  }

  async #note(path: string): Promise<BackupFile> {
    const file = { path, ...(await digestFile(join(this.#to, path), this.#options.stop)) };
    this.#files.push(file);
    return file;
  }
}
