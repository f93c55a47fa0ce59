// The files of a host's own views directory. Each is opened and looked at anew at every serve, so that a changed file is never served
// stale and never torn: what was sent is compared with what the file is at the end.
//
// Symbolic links are followed within the root only: the opened file itself is asked where it lies (/proc/self/fd), which no race can forge.

import { constants, fstatSync, type BigIntStats } from "node:fs";
import { open, readlink, realpath, type FileHandle } from "node:fs/promises";
import mime from "mime";
import type { ByteRange } from "../../core/conditional.ts";
import type { Body } from "./answer.ts";
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

/** What it means that there is no such file for visitors. Anything else (no descriptors, I/O errors) is thrown. */
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

export class DirectoryFiles implements SiteFiles {
  readonly #root: string;
  readonly #nowMs: () => number;

  constructor(root: string, nowMs: () => number) {
    this.#root = root;
    this.#nowMs = nowMs;
  }

  async find(path: string): Promise<SiteFile | undefined> {
    try {
      // Not blocking: opening a FIFO would wait for its writer.
      const handle = await open(
        `${this.#root}/${path}`,
        constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY,
      );
      let file: SiteFile | undefined;
      try {
        file = await this.#accept(handle, path);
      } finally {
        if (file === undefined) await handle.close();
      }
      return file;
    } catch (error) {
      if (error instanceof Error && "code" in error && absent.has(error.code)) return undefined;
      throw error;
    }
  }

  async #accept(handle: FileHandle, path: string): Promise<SiteFile | undefined> {
    const stats = fstatSync(handle.fd, { bigint: true });
    if (!stats.isFile()) return undefined;
    const [lies, root] = await Promise.all([
      readlink(`/proc/self/fd/${handle.fd}`),
      realpath(this.#root),
    ]);
    if (!lies.startsWith(root === "/" ? root : `${root}/`)) return undefined;
    return new DiskFile(handle, path, stats, this.#nowMs());
  }
}

class DiskFile implements SiteFile {
  readonly path: string;
  readonly contentType: string;
  readonly size: number;
  readonly digest: string;
  readonly validators: SiteFile["validators"];
  readonly #handle: FileHandle;

  constructor(handle: FileHandle, path: string, stats: BigIntStats, nowMs: number) {
    this.#handle = handle;
    this.path = path;
    this.contentType = contentTypeOf(mime.getType(path) ?? "application/octet-stream");
    this.size = Number(stats.size);
    this.digest = identityOf(stats);
    this.validators =
      nowMs - Number(stats.ctimeMs) < settledMs
        ? { etag: undefined, modifiedMs: undefined }
        : { etag: `"${this.digest}"`, modifiedMs: Number(stats.mtimeMs) };
  }

  async body(range: ByteRange = wholeRange(this.size)): Promise<Body> {
    if (this.size === 0) return new Uint8Array(0);
    const check = (): void => {
      if (identityOf(fstatSync(this.#handle.fd, { bigint: true })) !== this.digest)
        throw new SourceChanged(`${this.path} changed while it was read`);
    };
    if (range.last - range.first >= wholeBytesMax) return readInChunks(this.#handle, range, check);
    const bytes = await readExactly(this.#handle, range);
    check();
    return bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].map((part) => part.toString(36)).join("-");
}
