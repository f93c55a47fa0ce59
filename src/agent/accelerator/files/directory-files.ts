// The files of a host's own views directory. Each is opened and looked at anew at every serve, so that a changed file is never served
// stale and never torn: what was sent is compared with what the file is at the end.
//
// Links are followed inside the root only (base/below-root.ts), as an import follows them. A link from a name that visitors may ask to one that is
// hidden is the operator's wish: directories are published that way.

import { fstatSync, statSync, type BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import mime from "mime";
import { findBelow, identityOf } from "../../../base/below-root.ts";
import type { ByteRange } from "../../../core/http/conditional.ts";
import type { AnswerBody } from "../doors/answer.ts";
import type { ReadTurns } from "./read-turns.ts";
import {
  SourceChanged,
  contentTypeOf,
  readExactly,
  readInChunks,
  wholeBytesMax,
  wholeRange,
  type SiteFile,
  type SiteFiles,
} from "./site-files.ts";

/**
 * The errors that mean that there is no such file for visitors. Any other error (no descriptors, I/O) is
 * thrown.
 */
const absent: ReadonlySet<unknown> = new Set([
  "ENOENT",
  "ENOTDIR",
  "ENAMETOOLONG",
  "ELOOP",
  "EACCES",
  "EPERM",
  "ENXIO", // A socket, or a FIFO without reader.
]);

/** A file touched so recently may change again without another ctime (the kernel's clock ticks each 4 ms): it gets no validator. */
const settledMs = 20;

export type Directory = {
  readonly root: string;
  readonly prefix?: string;
  /** A file that is none of the site's: the devlove file, which may lie among the views. */
  readonly except?: string;
};

export class DirectoryFiles implements SiteFiles {
  /** A new file is served with the very next request. */
  readonly absent = undefined;
  readonly findNow = undefined;
  readonly #directory: Directory;
  readonly #nowMs: () => number;
  readonly #reads: ReadTurns;

  constructor(directory: Directory, nowMs: () => number, reads: ReadTurns) {
    this.#directory = directory;
    this.#nowMs = nowMs;
    this.#reads = reads;
  }

  async find(path: string): Promise<SiteFile | undefined> {
    const { root, prefix = "", except } = this.#directory;
    try {
      using found = await findBelow(root, prefix + path);
      if (found === undefined) return undefined;
      // The clock first: a file must not seem older than it was when it was looked at.
      const nowMs = this.#nowMs();
      const { stats } = found;
      if (!stats.isFile() || (except !== undefined && isSame(stats, except))) return undefined;
      return new DiskFile(await found.open(), { path, stats, nowMs, reads: this.#reads });
    } catch (error) {
      if (error instanceof Error && "code" in error && absent.has(error.code)) return undefined;
      throw error;
    }
  }
}

/** Returns whether a path is still the same file, under whatever name. */
function isSame({ dev, ino }: BigIntStats, path: string): boolean {
  const other = statSync(path, { bigint: true, throwIfNoEntry: false });
  return other !== undefined && other.dev === dev && other.ino === ino;
}

type Found = {
  readonly path: string;
  readonly stats: BigIntStats;
  readonly nowMs: number;
  readonly reads: ReadTurns;
};

class DiskFile implements SiteFile {
  readonly path: string;
  readonly contentType: string;
  readonly size: number;
  readonly digest: string;
  readonly validators: SiteFile["validators"];
  readonly #handle: FileHandle;
  readonly #reads: ReadTurns;

  constructor(handle: FileHandle, { path, stats, nowMs, reads }: Found) {
    this.#handle = handle;
    this.#reads = reads;
    this.path = path;
    this.contentType = contentTypeOf(mime.getType(path) ?? "application/octet-stream");
    this.size = Number(stats.size);
    this.digest = identityOf(stats);
    this.validators =
      nowMs - Number(stats.ctimeMs) < settledMs
        ? { etag: undefined, modifiedMs: undefined }
        : { etag: `"${this.digest}"`, modifiedMs: Number(stats.mtimeMs) };
  }

  held(): undefined {
    return undefined;
  }

  async body(range: ByteRange = wholeRange(this.size)): Promise<AnswerBody> {
    if (this.size === 0) return new Uint8Array(0);
    const check = (): void => {
      if (identityOf(fstatSync(this.#handle.fd, { bigint: true })) !== this.digest)
        throw new SourceChanged(`${this.path} changed while it was read`);
    };
    if (range.last - range.first >= wholeBytesMax)
      return readInChunks(this.#handle, range, { reads: this.#reads, check });
    const bytes = await readExactly(this.#handle, range);
    check();
    return bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}
