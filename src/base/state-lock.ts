// Allows one process per state directory. The lock is SQLite's: the kernel drops it when the process ends,
// however it ends, so no stale lock is ever left.

import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { AccelError, messageOf, systemCode } from "../core/faults.ts";
import { makeDirectories } from "./durable-file.ts";

/**
 * Locks the directory and creates it if needed. Throws STATE_DIR_UNUSABLE or STATE_DIR_LOCKED; dispose to
 * release.
 */
export function lockStateDir(stateDir: string): Disposable {
  try {
    makeDirectories(stateDir);
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new AccelError(
      "STATE_DIR_UNUSABLE",
      `the state directory ${stateDir} cannot be used: ${messageOf(error)}`,
    );
  }
  let db: Database.Database;
  try {
    db = new Database(join(stateDir, "lock"), { timeout: 0 });
  } catch (error) {
    throw new AccelError(
      "STATE_DIR_UNUSABLE",
      `the state directory ${stateDir} cannot be used: ${messageOf(error)}`,
    );
  }
  try {
    db.pragma("journal_mode = MEMORY");
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    throw systemCode(error)?.startsWith("SQLITE_BUSY") === true
      ? new AccelError(
          "STATE_DIR_LOCKED",
          `the state directory ${stateDir} is in use by another process`,
        )
      : new AccelError(
          "STATE_DIR_UNUSABLE",
          `the state directory ${stateDir} cannot be locked: ${messageOf(error)}`,
        );
  }
  return { [Symbol.dispose]: () => db.close() };
}
