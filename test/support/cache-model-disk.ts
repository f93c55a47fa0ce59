// The disk of the model check: index.db as a crash of the process, a loss of power or a restored backup leaves it.
//
// Power loss: what a FULL commit wrote is there, of every later commit a prefix (the WAL's frames are cut behind the newest that was synced), and
// files of bodies hold anything.

import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/base/sqlite.ts";

type WalPlace = {
  readonly frames: number;
  readonly backfilled: number;
  readonly salts: string;
  readonly pageBytes: number;
};

const walHeaderBytes = 32;
const frameHeaderBytes = 24;

export class ModelDisk {
  readonly directory: string;
  readonly #index: string;
  #copies = 0;

  constructor(directory: string) {
    this.directory = directory;
    this.#index = join(directory, "index.db");
  }

  /** By the index of the WAL that its connections share (SQLite's file format, "WAL-Index Format"). */
  walPlace(): WalPlace {
    const path = `${this.#index}-shm`;
    if (!existsSync(path)) return { frames: 0, backfilled: 0, salts: "", pageBytes: 4_096 };
    const header = readFileSync(path).subarray(0, 136);
    const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
    return {
      frames: view.getUint32(16, true),
      backfilled: view.getUint32(96, true),
      salts: header.subarray(32, 40).toString("hex"),
      pageBytes: view.getUint16(14, true),
    };
  }

  /** A copy as a backup makes it; its name. */
  keep(): string {
    const name = join(this.directory, `copy-${++this.#copies}`);
    for (const suffix of ["", "-wal"]) {
      rmSync(name + suffix, { force: true });
      if (existsSync(this.#index + suffix)) copyFileSync(this.#index + suffix, name + suffix);
    }
    return name;
  }

  /** Instead of what is there. Nobody has the index open. */
  putBack(name: string): void {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(this.#index + suffix, { force: true });
    for (const suffix of ["", "-wal"])
      if (existsSync(name + suffix)) copyFileSync(name + suffix, this.#index + suffix);
  }

  /** `synced`: where the WAL was at the newest FULL commit. `choose`: a number below its argument. */
  keepAfterPowerLoss(synced: WalPlace, choose: (below: number) => number): string {
    const { frames, backfilled, salts, pageBytes } = this.walPlace();
    const name = this.keep();
    if (!existsSync(`${name}-wal`)) return name;
    const least = Math.max(backfilled, salts === synced.salts ? synced.frames : 0);
    const kept = least + choose(Math.max(0, frames - least) + 1);
    const bytes = walHeaderBytes + kept * (frameHeaderBytes + pageBytes);
    if (statSync(`${name}-wal`).size > bytes) truncateSync(`${name}-wal`, bytes);
    return name;
  }

  /** The next boot of the kernel: every body that is a file may be torn. */
  reboot(choose: (below: number) => number): void {
    const db = openSqlite(this.#index, { sync: "full" });
    // A file whose first transaction was lost is an empty one.
    if (Number(db.pragma("user_version", { simple: true })) > 0)
      db.exec("UPDATE state SET boot_id = 'the boot before' WHERE boot_id <> ''");
    db.close();
    for (const path of this.objects())
      if (choose(2) === 0) writeFileSync(path, Buffer.alloc(statSync(path).size));
  }

  objects(): string[] {
    const objects = join(this.directory, "objects");
    return readdirSync(objects, { recursive: true, encoding: "utf8" })
      .filter((path) => path.includes("/"))
      .map((path) => join(objects, path));
  }
}
