// Files that are set aside for the operator and never read again by the agent.
//
//   spool/corrupt/<segment>.<offset>   bytes of a segment that are no frames; also a damaged spool/marks. At
//                                      most 100 files and 16 MiB
//   spool/poison.ndjson                {"lane","seq","refused_at","why","record"}: records that central
//                                      refused, one a line. At most 16 MiB
//
// Beyond these limits, and where the disk refuses, nothing is kept; central is told of the gap all the same.

import { basename, join } from "node:path";
import { writeWhole, type SpoolFiles } from "./spool-files.ts";
import { systemCode } from "../../../core/faults.ts";

const corruptFilesMax = 100;
const corruptBytesMax = 16 * 2 ** 20;
const poisonBytesMax = 16 * 2 ** 20;

export type PoisonRecord = {
  readonly lane: string;
  readonly seq: number;
  readonly refusedAt: string;
  readonly why: string;
  /** The line as it was sent, JSON of any shape. */
  readonly line: string;
};

export class SideFiles {
  readonly #files: SpoolFiles;
  readonly #corrupt: string;
  readonly #poison: string;

  constructor(files: SpoolFiles, directory: string) {
    this.#files = files;
    this.#corrupt = join(directory, "corrupt");
    this.#poison = join(directory, "poison.ndjson");
  }

  /** Keeps damaged bytes of a file; those that were kept before are not kept twice. */
  keepDamaged(path: string, at: number, bytes: Uint8Array): void {
    try {
      if (!this.#hasRoom(bytes.byteLength)) return;
      const file = this.#files.create(join(this.#corrupt, `${basename(path)}.${at}`));
      try {
        writeWhole(this.#files, file, bytes, 0);
      } finally {
        this.#files.close(file);
      }
    } catch {
      // The disk that damaged the bytes may refuse to keep them too.
    }
  }

  /** Moves a whole file away. If that fails, the file stays; its owner replaces it anyway. */
  moveDamaged(path: string, no: number): void {
    try {
      if (this.#hasRoom(this.#files.stat(path).bytes))
        this.#files.rename(path, join(this.#corrupt, `${basename(path)}.${no}`));
    } catch {
      // The disk that damaged the file may refuse this too.
    }
  }

  keepPoison({ lane, seq, refusedAt, why, line }: PoisonRecord): void {
    const facts = JSON.stringify({ lane, seq, refused_at: refusedAt, why });
    const bytes = Buffer.from(`${facts.slice(0, -1)},"record":${line.trimEnd()}}\n`);
    try {
      const at = this.#poisonBytes();
      if (at + bytes.byteLength > poisonBytesMax) return;
      const file = at === 0 ? this.#files.create(this.#poison) : this.#files.open(this.#poison);
      try {
        writeWhole(this.#files, file, bytes, at);
        this.#files.datasync(file);
      } finally {
        this.#files.close(file);
      }
    } catch {
      // The disk refuses: the record is not kept, but central is told of the gap.
    }
  }

  #hasRoom(bytes: number): boolean {
    this.#files.ensureDirectory(this.#corrupt);
    const kept = this.#files.list(this.#corrupt);
    if (kept.length >= corruptFilesMax) return false;
    const keptBytes = kept.map((name) => this.#files.stat(join(this.#corrupt, name)).bytes);
    return keptBytes.reduce((sum, each) => sum + each, bytes) <= corruptBytesMax;
  }

  #poisonBytes(): number {
    try {
      return this.#files.stat(this.#poison).bytes;
    } catch (error) {
      if (systemCode(error) === "ENOENT") return 0;
      throw error;
    }
  }
}
