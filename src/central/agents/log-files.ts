// Names of the request-log files: `<YYYY-MM-DD>.db` with `-wal` and `-shm` beside it, `….broken` if set
// aside, `….removed` on its way out, `restored` if they came from a backup, and `in-database` if they are written no more.

import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";

/** The file that says that central may lack what it has acknowledged. */
export const restoredMark = "restored";

/** The file that says that request logs go on in a database, and that these files are no longer written. */
export const inDatabaseMark = "in-database";

const suffixes = ["", "-wal", "-shm"] as const;

export function dayPath(directory: string, day: string): string {
  return join(directory, `${day}.db`);
}

export function dayOf(fileName: string): string | undefined {
  return /^\d{4}-\d\d-\d\d\.db$/.test(fileName) ? fileName.slice(0, -3) : undefined;
}

export function dayBytes(directory: string, day: string): number {
  const path = dayPath(directory, day);
  return suffixes.reduce(
    (sum, suffix) => sum + (statSync(path + suffix, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

/** Tells one file of a name from another; 0 if there is none. */
export function inodeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? 0;
}

/** Sets a broken day aside. Returns the new path. */
export function setAside(directory: string, day: string): string {
  const path = dayPath(directory, day);
  let aside = `${path}.broken`;
  for (let no = 1; existsSync(aside); no++) aside = `${path}.broken-${no}`;
  for (const suffix of suffixes)
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  return aside;
}

/** Marks files that were set aside, and whose day ended before, for removal. */
export function markAsideRemoved(directory: string, beforeMs: number): void {
  for (const name of readdirSync(directory)) {
    const [, day] = /^(\d{4}-\d\d-\d\d)\.db\.broken[-\w]*$/.exec(name) ?? [];
    if (day !== undefined && Date.parse(day) < beforeMs)
      renameSync(join(directory, name), join(directory, `${name}.removed`));
  }
}

/**
 * Marks a day for removal: it no longer counts as a day, and `removeMarked` gives its room back. Durable when
 * this returns.
 */
export function markRemoved(directory: string, day: string): void {
  const path = dayPath(directory, day);
  for (const suffix of suffixes)
    if (existsSync(path + suffix)) renameSync(path + suffix, `${path}${suffix}.removed`);
  syncNames(directory);
}

function syncNames(directory: string): void {
  const fd = openSync(directory, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Notes that request logs go on in a database. Durable when this returns. */
export function markInDatabase(directory: string, where: string): void {
  const file = openSync(join(directory, inDatabaseMark), "w", 0o600);
  try {
    writeSync(file, `${where}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  syncNames(directory);
}

/** Returns which database request logs go on in; undefined if they lie in these files. */
export function readInDatabase(directory: string): string | undefined {
  const path = join(directory, inDatabaseMark);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}

/**
 * The bytes that are freed at once. Freeing gigabytes at once would delay whoever syncs to the same file
 * system meanwhile.
 */
const cutBytes = 128 * 2 ** 20;

/** Removes the marked files, which nobody has open. This also removes what a killed process left. */
export async function removeMarked(directory: string): Promise<void> {
  const names = readdirSync(directory).filter((name) => name.endsWith(".removed"));
  for (const name of names) {
    const path = join(directory, name);
    const file = await open(path, "r+");
    try {
      let { size } = await file.stat();
      for (; size > cutBytes; size -= cutBytes) await file.truncate(size - cutBytes);
    } finally {
      await file.close();
    }
    await rm(path, { force: true });
  }
}
