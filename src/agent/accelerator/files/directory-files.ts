// The files of a host's own views directory. Each is looked at anew at every serve, so that a changed file is never served
// stale and never torn: what was sent is compared with what the file is at the end. A small one that has rested is read once: its bytes stay in memory, by what the file
// is, where that can be seen without opening it.
//
// Links are followed inside the root only (base/below-root.ts), as an import follows them. A link from a name that visitors may ask to one that is
// hidden is the operator's wish: directories are published that way.

import { fstatSync, statSync, type BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import mime from "mime";
import { findBelow, findBelowNow, identityOf } from "../../../base/below-root.ts";
import { isOfThisHost } from "../../../base/local-files.ts";
import type { ByteRange } from "../../../core/http/conditional.ts";
import type { AnswerBody } from "../doors/answer.ts";
import type { BlobBodies } from "./bodies.ts";
import {
  SourceChanged,
  contentTypeOf,
  partOf,
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
/**
 * The bytes of one that has rested so long stay in memory. A program that writes through a mapping does not change the file's times again before the kernel has written the page
 * back, which Linux does within 35 s (vm.dirty_expire_centisecs, unless somebody has raised it).
 */
const restedMs = 60_000;

/** The most names whose bytes were in memory when they were last looked at; anybody may ask for any number of files. */
const restingMax = 4_096;

export type Directory = {
  readonly root: string;
  readonly prefix?: string;
  /** A file that is none of the site's: the devlove file, which may lie among the views. */
  readonly except?: string;
};

export class DirectoryFiles implements SiteFiles {
  /** A new file is served with the very next request. */
  readonly absent = undefined;
  readonly #directory: Directory;
  readonly #nowMs: () => number;
  readonly #bodies: HeldBodies;
  readonly #isLocal: typeof isOfThisHost;
  /** What was found of each device; a mount that takes another's place comes with another number, or with the next state. */
  readonly #locals = new Map<bigint, boolean>();
  /** Names of files that lie on a disk of this host and were asked for lately: the kernel finds them without the disk, and sooner than another thread could be asked. */
  readonly #resting = new Set<string>();

  /** `isLocal`: another one is for tests. */
  constructor(
    directory: Directory,
    nowMs: () => number,
    bodies: HeldBodies,
    isLocal = isOfThisHost,
  ) {
    this.#directory = directory;
    this.#nowMs = nowMs;
    this.#bodies = bodies;
    this.#isLocal = isLocal;
  }

  async find(path: string): Promise<SiteFile | undefined> {
    const { root, prefix = "" } = this.#directory;
    try {
      using found = await findBelow(root, prefix + path);
      if (found === undefined) return undefined;
      // The clock first: a file must not seem older than it was when it was looked at.
      const nowMs = this.#nowMs();
      const { stats } = found;
      if (!this.#isOfSite(stats)) return undefined;
      const bodies = this.#bodies;
      const digest = identityOf(stats);
      const held = bodies.heldFile(digest);
      if (held !== undefined) this.#noteResting(path);
      const isKept = held === undefined && (await this.#mayKeep(found.link, stats, nowMs));
      const handle = held === undefined ? await found.open() : undefined;
      return new DiskFile({ path, stats, digest, nowMs, bodies, held, isKept, handle });
    } catch (error) {
      if (error instanceof Error && "code" in error && absent.has(error.code)) return undefined;
      throw error;
    }
  }

  findNow(path: string): SiteFile | "has-to-wait" {
    if (!this.#resting.has(path)) return "has-to-wait";
    const file = this.#findResting(path);
    if (file === undefined) this.#resting.delete(path);
    return file ?? "has-to-wait";
  }

  /** Undefined: it is another one by now, or whatever else `find` finds out. */
  #findResting(path: string): SiteFile | undefined {
    const { root, prefix = "" } = this.#directory;
    const bodies = this.#bodies;
    try {
      using found = findBelowNow(root, prefix + path);
      if (found === undefined) return undefined;
      const nowMs = this.#nowMs();
      const { stats } = found;
      const digest = identityOf(stats);
      const held = bodies.heldFile(digest);
      if (held === undefined || !this.#isOfSite(stats)) return undefined;
      return new DiskFile({
        path,
        stats,
        digest,
        nowMs,
        bodies,
        held,
        isKept: false,
        handle: undefined,
      });
    } catch {
      return undefined;
    }
  }

  #isOfSite(stats: BigIntStats): boolean {
    const { except } = this.#directory;
    return stats.isFile() && (except === undefined || !isSame(stats, except));
  }

  #noteResting(path: string): void {
    if (this.#resting.size >= restingMax) this.#resting.clear();
    this.#resting.add(path);
  }

  async #mayKeep(
    link: string,
    { dev, size, ctimeMs }: BigIntStats,
    nowMs: number,
  ): Promise<boolean> {
    if (size > wholeBytesMax || nowMs - Number(ctimeMs) < restedMs) return false;
    const isLocal = this.#locals.get(dev) ?? (await this.#isLocal(link));
    this.#locals.set(dev, isLocal);
    return isLocal;
  }
}

/** Returns whether a path is still the same file, under whatever name. */
function isSame({ dev, ino }: BigIntStats, path: string): boolean {
  const other = statSync(path, { bigint: true, throwIfNoEntry: false });
  return other !== undefined && other.dev === dev && other.ino === ino;
}

/** Memory that lasts beyond one request, and whose turn it is to read. */
type HeldBodies = Pick<BlobBodies, "heldFile" | "keepFile" | "chunks">;

type Found = {
  readonly path: string;
  readonly stats: BigIntStats;
  readonly digest: string;
  readonly nowMs: number;
  readonly bodies: HeldBodies;
  readonly held: Uint8Array | undefined;
  /** Whether its bytes are to be held when they have been read. */
  readonly isKept: boolean;
  /** Undefined where the bytes are held. */
  readonly handle: FileHandle | undefined;
};

class DiskFile implements SiteFile {
  readonly path: string;
  readonly contentType: string;
  readonly size: number;
  readonly digest: string;
  readonly validators: SiteFile["validators"];
  readonly #found: Found;

  constructor(found: Found) {
    const { path, stats, digest, nowMs } = found;
    const restsMs = nowMs - Number(stats.ctimeMs);
    this.#found = found;
    this.path = path;
    this.contentType = contentTypeOf(mime.getType(path) ?? "application/octet-stream");
    this.size = Number(stats.size);
    this.digest = digest;
    this.validators =
      restsMs < settledMs
        ? { etag: undefined, modifiedMs: undefined }
        : { etag: `"${digest}"`, modifiedMs: Number(stats.mtimeMs) };
  }

  held(): Uint8Array | undefined {
    return this.#found.held;
  }

  async body(range: ByteRange = wholeRange(this.size)): Promise<AnswerBody> {
    if (this.size === 0) return new Uint8Array(0);
    const { held, handle, bodies, isKept } = this.#found;
    if (held !== undefined) return partOf(held, range);
    if (handle === undefined) throw new TypeError("a file that is not held is open");
    const check = (): void => {
      if (identityOf(fstatSync(handle.fd, { bigint: true })) !== this.digest)
        throw new SourceChanged(`${this.path} changed while it was read`);
    };
    if (range.last - range.first >= wholeBytesMax)
      return readInChunks(handle, range, { reads: bodies.chunks.reads, check });
    const bytes = await readExactly(handle, isKept ? wholeRange(this.size) : range);
    check();
    if (!isKept) return bytes;
    bodies.keepFile(this.digest, bytes);
    return partOf(bytes, range);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#found.handle?.close();
  }
}
