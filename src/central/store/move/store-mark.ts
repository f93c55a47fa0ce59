// The mark in a state directory whose store was moved to PostgreSQL, or is being moved: a central that would serve from the file beside it is refused.

import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory, writeDurable } from "../../../base/durable-file.ts";
import { AccelError, messageOf, systemCode } from "../../../core/faults.ts";

export type StoreMark = {
  readonly state: "moving" | "moved";
  /** Server and database, without a password. */
  readonly to: string;
  /** The epoch of the store, which it keeps. */
  readonly epoch: string;
  /** When the move began, or when it was whole; ISO 8601. */
  readonly when: string;
};

const markName = "store.moved";

/** Undefined for a directory whose store was never moved. Throws FILE_UNUSABLE for a mark that cannot be read. */
export function readStoreMark(stateDir: string): StoreMark | undefined {
  const path = join(stateDir, markName);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw new AccelError("FILE_UNUSABLE", `${path} cannot be read: ${messageOf(error)}`);
  }
  const mark = parseMark(text);
  if (mark === undefined)
    throw new AccelError("FILE_UNUSABLE", `${path} is not as \`accel-central migrate\` writes it`);
  return mark;
}

function parseMark(text: string): StoreMark | undefined {
  let raw: Record<string, unknown>;
  try {
    raw = Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return undefined;
  }
  const { state, to, epoch, when } = raw;
  if (state !== "moving" && state !== "moved") return undefined;
  if (typeof to !== "string" || typeof epoch !== "string" || typeof when !== "string")
    return undefined;
  return { state, to, epoch, when };
}

/** Durable when it resolves. */
export async function writeStoreMark(stateDir: string, mark: StoreMark): Promise<void> {
  // Readable by all: root may write it, and central runs as another user.
  await writeDurable(join(stateDir, markName), `${JSON.stringify(mark)}\n`, 0o644);
}

export async function removeStoreMark(stateDir: string): Promise<void> {
  await rm(join(stateDir, markName), { force: true });
  await syncDirectory(stateDir);
}
