// Makes a consistent copy of a SQLite file that others go on writing to: the pages as one read transaction
// saw them, in a single file without a log beside it.

import { open } from "node:fs/promises";
import Database from "better-sqlite3";
import { AccelError } from "../core/faults.ts";

/** 16 MiB in one go: the process that copies has nothing else to do but end early. */
const pagesPerTurn = 4_096;
const busyTimeoutMs = 5_000;

/**
 * Copies a SQLite file to `to`, which must not exist and is synced when this resolves. With `checked`, its
 * structure is checked as well. Throws STORE_DAMAGED if that finds a fault, the reason that `stop` aborted
 * with, and what the disk throws.
 */
export async function copySqlite(
  from: string,
  to: string,
  { checked, stop }: { readonly checked: boolean; readonly stop: AbortSignal },
): Promise<void> {
  const source = new Database(from, {
    readonly: true,
    fileMustExist: true,
    timeout: busyTimeoutMs,
  });
  try {
    // The transaction stays open, so that pages written meanwhile do not restart the copy.
    source.exec("BEGIN");
    source.prepare("SELECT count(*) FROM sqlite_schema").get();
    await source.backup(to, {
      progress: () => {
        stop.throwIfAborted();
        return pagesPerTurn;
      },
    });
  } finally {
    source.close();
  }
  finish(from, to, checked);
  await using file = await open(to, "r+");
  await file.chmod(0o600);
  await file.sync();
}

/** Turns the copy into a file that can be read where nothing may be written. */
function finish(from: string, to: string, checked: boolean): void {
  const copy = new Database(to);
  try {
    copy.pragma("journal_mode = DELETE");
    if (!checked) return;
    const verdict = String(copy.pragma("quick_check(1)", { simple: true }));
    if (verdict !== "ok") throw new AccelError("STORE_DAMAGED", `${from} is damaged: ${verdict}`);
  } finally {
    copy.close();
  }
}
