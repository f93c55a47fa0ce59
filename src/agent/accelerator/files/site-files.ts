// The static files of a host, whichever way they lie there: what a path names (index files, the redirect of a directory to its slash, what is hidden),
// and where its bytes come from.

import type { FileHandle } from "node:fs/promises";
import type { ByteRange, Validators } from "../../../core/http/conditional.ts";
import type { AnswerBody } from "../doors/answer.ts";
import { chunkBytes, type LentChunks } from "./chunks.ts";
import type { ReadTurns } from "./read-turns.ts";
import { decodePath, isServable } from "../../../core/http/request-path.ts";
import type { SiteSettings } from "../../../core/serving/effective-devlove.ts";
import type { FileFact } from "../../../core/serving/request-plan.ts";

/** A file as it is now. Disposing releases it; a body must have been sent by then. */
export type SiteFile = AsyncDisposable & {
  /** Relative to the site root, decoded. */
  readonly path: string;
  readonly size: number;
  /** The media type with its parameters, as sent in Content-Type. */
  readonly contentType: string;
  readonly validators: Validators;
  /** Equal digests are equal bytes: what makes a noted entry a hit. */
  readonly digest: string;
  /**
   * Resolves when the bytes are there or begin to come, the whole without `range`. Throws when the source fails. They must not be changed: other answers
   * may have the same. `disk`: those of a blob are read from there, also where memory has them.
   */
  body(range: ByteRange | undefined, from?: "disk"): Promise<AnswerBody>;
  /** Returns the whole where memory has it. It must not be changed. */
  held(): Uint8Array | undefined;
};

export interface SiteFiles {
  /** Paths as they were asked for that name nothing here, now and ever; undefined where every request has to look anew. */
  readonly absent: Pick<AbsentPaths, "has" | "add"> | undefined;
  /** A regular file, or undefined. `path` is relative, without empty, `.` and `..` segments. Throws when the host cannot tell (no descriptors left). */
  find(path: string): Promise<SiteFile | undefined>;
  /** Finds the same without waiting, as a file that nobody has to dispose, or says that a look may have to wait for the disk. Never throws. */
  findNow(path: string): SiteFile | undefined | "has-to-wait";
}

/** The most paths that are remembered; anybody may ask for any number of them. */
const absentMax = 4_096;
const absentCharsMax = 256;

/** What was looked for and not found. */
export class AbsentPaths {
  readonly #paths = new Set<string>();

  has(rawPath: string): boolean {
    return this.#paths.has(rawPath);
  }

  add(rawPath: string): void {
    if (rawPath.length > absentCharsMax) return;
    if (this.#paths.size >= absentMax) this.#paths.clear();
    this.#paths.add(rawPath);
  }
}

/** Files up to this size are read whole: one read, one write, and no torn answer. */
export const wholeBytesMax = 64 * 1024;

/** The source changed or ended while it was being sent: the answer must break. */
export class SourceChanged extends Error {}

/** Reads exactly `first` to `last`. Unless `memory` gives another one, memory is of the call's own: never a slice of a pool that others write. */
export async function readExactly(
  file: FileHandle,
  { first, last }: ByteRange,
  memory = (bytes: number): Buffer<ArrayBuffer> => Buffer.allocUnsafeSlow(bytes),
): Promise<Uint8Array> {
  const buffer = memory(last - first + 1);
  for (let done = 0; done < buffer.length;) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, first + done);
    if (bytesRead === 0) throw new SourceChanged("the file ended early");
    done += bytesRead;
  }
  return buffer;
}

export type ReadOptions = {
  /** Whose turn it is to read. */
  readonly reads: ReadTurns;
  /** Runs before the last piece is given out, and may throw. */
  readonly check?: () => void;
  /** The memory for the pieces; of their own unless some is lent. */
  readonly lent?: LentChunks;
};

/** Reads piece by piece, each when it is its turn. */
export async function* readInChunks(
  file: FileHandle,
  { first, last }: ByteRange,
  { reads, check, lent }: ReadOptions,
): AsyncGenerator<Uint8Array> {
  for (let at = first; at <= last;) {
    const end = Math.min(last, at + (lent?.bytes ?? chunkBytes) - 1);
    const piece = { first: at, last: end };
    // Memory is taken when it is the turn of its piece: who waits has none.
    const chunk = await reads.take(async () => readExactly(file, piece, lent?.take));
    if (end === last) check?.();
    at = end + 1;
    yield chunk;
  }
}

export function wholeRange(size: number): ByteRange {
  return { first: 0, last: size - 1 };
}

export function partOf(whole: Uint8Array, { first, last }: ByteRange): Uint8Array {
  return last - first + 1 === whole.length ? whole : whole.subarray(first, last + 1);
}

/**
 * Returns the Content-Type of a media type. Text says its charset: everything made within the last twenty
 * years is UTF-8.
 */
export function contentTypeOf(mime: string): string {
  return /^text\/[^;]+$/i.test(mime) ? `${mime}; charset=utf-8` : mime;
}

export type FileFound =
  | { readonly kind: "file"; readonly file: SiteFile }
  | Exclude<FileFact, { readonly kind: "file" }>;

/** Of a host without static files. */
export const noFiles: SiteFiles = {
  absent: { has: () => true, add: () => undefined },
  find: async () => undefined,
  findNow: () => undefined,
};

export const noFile: FileFound = { kind: "none" };

/** Finds what a path names. The caller disposes the file. */
export async function routeStatic(
  files: SiteFiles,
  rawPath: string,
  index: SiteSettings["index"],
): Promise<FileFound> {
  const walk = walkPaths(rawPath, index);
  let last: SiteFile | undefined;
  for (let step = walk.next(); ; step = walk.next(last)) {
    if (step.done !== true) {
      const now = files.findNow(step.value);
      last = now === "has-to-wait" ? await files.find(step.value) : now;
      continue;
    }
    if (step.value.kind !== "file") await last?.[Symbol.asyncDispose]();
    return step.value;
  }
}

/** Finds the same at once, where no look has to wait; nothing has to be disposed. */
export function routeNow(
  files: Pick<SiteFiles, "findNow">,
  rawPath: string,
  index: SiteSettings["index"],
): FileFound | "has-to-wait" {
  const walk = walkPaths(rawPath, index);
  for (let step = walk.next(); ;) {
    if (step.done === true) return step.value;
    const found = files.findNow(step.value);
    if (found === "has-to-wait") return found;
    step = walk.next(found);
  }
}

/** Yields the paths to look for, takes what lies there, and returns what that means. */
function* walkPaths(
  rawPath: string,
  index: SiteSettings["index"],
): Generator<string, FileFound, SiteFile | undefined> {
  const path = decodePath(rawPath);
  if (path === undefined || !isServable(path)) return noFile;
  const isDirectory = path === "" || path.endsWith("/");
  if (!isDirectory) {
    const file = yield path;
    if (file !== undefined) return { kind: "file", file };
  }
  for (const name of index) {
    if (!isServable(name)) continue;
    const file = yield isDirectory ? path + name : `${path}/${name}`;
    if (file === undefined) continue;
    if (isDirectory) return { kind: "file", file };
    // Encoded anew from what was looked up: as sent, `//host/..` or a backslash could lead elsewhere.
    return { kind: "directory", path: `/${path.split("/").map(encodeURIComponent).join("/")}/` };
  }
  return noFile;
}

/** A page that the devlove names. The caller disposes the file. */
export async function findPage(files: SiteFiles, path: string | null): Promise<FileFound> {
  const file = path === null ? undefined : await files.find(path);
  return file === undefined ? noFile : { kind: "file", file };
}
