// The directory that `--state` names: created, tried, and refused in words before anything is started in it.

import { statfsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { writeDurable, makeDirectories } from "../base/durable-file.ts";
import { AccelError, messageOf } from "../core/faults.ts";

/** The least free room: the demo site, both databases and the cache of an evening take less. */
const roomMin = 64 * 2 ** 20;

const words: Readonly<Record<string, string>> = {
  EACCES: "you may not write there",
  EDQUOT: "no room is left there",
  ENOENT: "nothing can be created there",
  ENOSPC: "no room is left there",
  ENOTDIR: "a file is in the way",
  EPERM: "you may not write there",
  EROFS: "it lies on a file system that is read-only",
};

/**
 * Makes and tries the directory. Throws DEMO_STATE_UNUSABLE if it cannot be made or written to, or has too
 * little room.
 */
export async function openStateDir(stateDir: string): Promise<void> {
  const trial = join(stateDir, ".trial");
  try {
    makeDirectories(stateDir);
    await writeDurable(trial, "x".repeat(4_096));
    await rm(trial);
  } catch (error) {
    throw stateFault(stateDir, error);
  }
  const { bavail, bsize } = statfsSync(stateDir);
  const room = bavail * bsize;
  if (room < roomMin)
    throw new AccelError(
      "DEMO_STATE_UNUSABLE",
      `--state ${stateDir}: ${(room / 2 ** 20).toFixed(1)} MiB are left there, and the demo needs ${roomMin / 2 ** 20}`,
    );
}

/** Says in words what went wrong below the state directory. Errors of our own stay as they are. */
export function stateFault(stateDir: string, error: unknown): unknown {
  if (error instanceof AccelError || !(error instanceof Error) || !("code" in error)) return error;
  const why = words[String(error.code)];
  if (why === undefined && !("path" in error)) return error;
  const said = `--state ${stateDir} cannot be used: ${why ?? messageOf(error)}`;
  return new AccelError("DEMO_STATE_UNUSABLE", said, { cause: error });
}
