// Bodies as files: cache/objects/<shard>/<name>, one a stored response.
//
//   name    8 hex: the run of the index thread that admitted it, then 24 hex at random. Never reused, never derived from what a visitor sends.
//   shard   the first two of the random characters
//
// A body is written under its final name before its row is committed and unlinked after its row is deleted, so a crash leaves files without rows,
// never rows without files. Files without rows are swept, but for those of the current run, whose rows may be on their way.

import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const shards = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));
const runChars = 8;

export const newRun = (): string => randomBytes(runChars / 2).toString("hex");
export const newObjectName = (run: string): string => run + randomBytes(12).toString("hex");

export function objectPath(directory: string, name: string): string {
  return join(directory, "objects", name.slice(runChars, runChars + 2), name);
}

export function makeObjectDirectories(directory: string): void {
  const objects = join(directory, "objects");
  mkdirSync(objects, { recursive: true, mode: 0o700 });
  const there = new Set(readdirSync(objects));
  for (const shard of shards)
    if (!there.has(shard)) mkdirSync(join(objects, shard), { mode: 0o700 });
}

export function unlinkObject(directory: string, name: string): void {
  rmSync(objectPath(directory, name), { force: true });
}

/** Goes through the shards one per step. */
export class ObjectSweep {
  readonly #directory: string;
  readonly #run: string;
  #left = [...shards];

  constructor(directory: string, run: string) {
    this.#directory = directory;
    this.#run = run;
  }

  get done(): boolean {
    return this.#left.length === 0;
  }

  /** Unlinks what no row names in the next shard. */
  step(isNamed: (object: string) => boolean): void {
    const shard = this.#left.pop();
    if (shard === undefined) return;
    const path = join(this.#directory, "objects", shard);
    const orphans = readdirSync(path).filter(
      (name) => !name.startsWith(this.#run) && !isNamed(name),
    );
    for (const name of orphans) rmSync(join(path, name), { force: true, recursive: true });
  }
}
