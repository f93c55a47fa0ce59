// A state directory as a running central leaves it, and the two commands over it as processes.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { openBlobs } from "../../../src/central/store/content/blobs.ts";
import { openStore, storeEpoch } from "../../../src/central/store/engine/database.ts";
import { openKeyFile } from "../../../src/base/seal.ts";
import { type Sha256, sha256Of } from "../../../src/core/ids.ts";
import { LogStore } from "../../../src/central/agents/log-store.ts";
import { Program } from "../../support/process.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** Blobs to be: enough that a process can be killed among them. */
export const texts: readonly string[] = Array.from({ length: 300 }, (_, no) =>
  `file ${no}\n`.repeat(no + 1),
);

export const now = (): Date => new Date("2030-01-15T12:00:00.000Z");

export const packageFile = "packages/0123456789abcdef01234567";

type Name = "backup" | "restore" | "rekey" | "serve";

export class BackupRig implements Disposable {
  readonly #temp = tempDir();
  readonly dir = this.#temp.path;
  readonly stateDir = join(this.dir, "state");
  readonly backup = join(this.dir, "backup");

  constructor() {
    this.writeSettings(this.stateDir);
  }

  /** Of what the commands run on from now on. */
  writeSettings(stateDir: string): void {
    writeFileSync(this.#settings, `listen: 127.0.0.1:0\nstate_dir: ${stateDir}\n`);
  }

  /** Store, key, blobs of these texts, two days of logs and a package. */
  async prepare(texts: readonly string[]): Promise<readonly Sha256[]> {
    mkdirSync(join(this.stateDir, "logs"), { recursive: true });
    mkdirSync(join(this.stateDir, "packages"));
    writeFileSync(join(this.stateDir, packageFile), "a wheel");
    // What an upload left that was refused is no package.
    writeFileSync(join(this.stateDir, "packages/ffffffffffffffffffffffff"), "half a wheel");
    await openKeyFile(join(this.stateDir, "central.key"));
    await using store = await openStore(join(this.stateDir, "central.db"), now);
    const blobs = await openBlobs(join(this.stateDir, "blobs"), store, now);
    await store
      .insertInto("packages")
      .values({
        version: "1.0",
        version_key: "1",
        file: "accel_pack-1.0-py3-none-any.whl",
        size: 7,
        sha256: sha256Of(""),
        stored_as: basename(packageFile),
        uploaded_by_user_id: 1,
        when_created: now().toISOString(),
      })
      .execute();
    const digests = await Promise.all(texts.map(async (text) => blobs.put(Buffer.from(text))));
    for (const day of ["2030-01-14", "2030-01-15"]) {
      using logs = new LogStore(join(this.stateDir, "logs"), () => undefined);
      logs.tryToWrite(Date.parse(day));
    }
    return digests;
  }

  command(name: Name, ...args: readonly string[]): Promise<Program> {
    return Program.start(["central", name, ...args, "--config", this.#settings]);
  }

  /** To its end: what it said, and how it ended. */
  async run(name: Name, ...args: readonly string[]) {
    await using program = await this.command(name, ...args);
    const code = await program.exited();
    return { code, said: program.said };
  }

  async epoch(stateDir: string): Promise<string> {
    await using store = await openStore(join(stateDir, "central.db"), now);
    return await storeEpoch(store);
  }

  /** Beside the backup, of runs that were cut off. */
  unfinished(): readonly string[] {
    return readdirSync(this.dir).filter((name) => name.startsWith("backup.unfinished-"));
  }

  [Symbol.dispose](): void {
    this.#temp[Symbol.dispose]();
  }

  get #settings(): string {
    return join(this.dir, "central.yaml");
  }
}

/** Paths below that are files, with their content. */
export function contentOf(root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const walk = (below: string): void => {
    for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
      const path = join(below, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile()) found.set(path, readFileSync(join(root, path)).toString("latin1"));
    }
  };
  if (existsSync(root)) walk("");
  return found;
}
