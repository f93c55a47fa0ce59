// Bodies as a worker reads them: from memory, from SQLite, from their files. A file that a power loss may have torn is compared with its digest before
// its first use.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, open, type FileHandle } from "node:fs/promises";
import { objectPath } from "../index/object-files.ts";
import type { BodyRow } from "./lookups.ts";
import { hotBodyBytesMax } from "./hot-memory.ts";

/** The most files remembered as complete, until the index says so too. */
const verifiedMax = 10_000;

export type ReadBody = Uint8Array | BodyStream;

export class BodyReader {
  readonly #directory: string;
  readonly #onVerified: (id: number) => void;
  /** Ids are never reused, so it outlives an index. */
  readonly #verified = new Set<number>();

  constructor(directory: string, onVerified: (id: number) => void) {
    this.#directory = directory;
    this.#onVerified = onVerified;
  }

  /** Reads a body. Undefined: it is missing, torn, or not what was written. */
  async read(id: number, row: BodyRow, isSuspect: boolean): Promise<ReadBody | undefined> {
    if (row.size === 0) return new Uint8Array();
    if (row.bytes !== null) return row.bytes.length === row.size ? row.bytes : undefined;
    if (row.object === null) return undefined;
    const path = objectPath(this.#directory, row.object);
    const needsProof = isSuspect && row.isVerified === 0 && !this.#verified.has(id);
    if (row.size > hotBodyBytesMax) {
      if (needsProof && !this.#accept(id, row, await digestOfFile(path))) return undefined;
      return BodyStream.open(path, row.size);
    }
    const body = await readFile(path).catch(() => undefined);
    if (body?.length !== row.size) return undefined;
    if (needsProof && !this.#accept(id, row, digestOf(body))) return undefined;
    return body;
  }

  #accept(id: number, { objectDigest }: BodyRow, digest: Uint8Array | undefined): boolean {
    if (digest === undefined || objectDigest === null) return false;
    if (Buffer.compare(digest, objectDigest) !== 0) return false;
    if (this.#verified.size < verifiedMax) this.#verified.add(id);
    this.#onVerified(id);
    return true;
  }
}

function digestOf(body: Uint8Array): Uint8Array {
  return createHash("sha256").update(body).digest();
}

async function digestOfFile(path: string): Promise<Uint8Array | undefined> {
  const hash = createHash("sha256");
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk);
    return hash.digest();
  } catch {
    return undefined;
  }
}

// A large body read from its file. The file is opened, and its length compared, before anyone is promised the body; after that it may be unlinked.

const chunkBytes = 65_536;
/** A stream that nobody began to read by then closes its file by itself. */
const untouchedMs = 30_000;

/** Read once, from the start. Ends its file at the end, when the reader stops early, or when disposed. Throws when the file turns out shorter. */
export class BodyStream implements AsyncIterable<Uint8Array>, AsyncDisposable {
  readonly #file: FileHandle;
  readonly #size: number;
  readonly #untouched: NodeJS.Timeout;
  #isClosed = false;

  private constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.#size = size;
    this.#untouched = setTimeout(() => void this[Symbol.asyncDispose](), untouchedMs);
    this.#untouched.unref();
  }

  /** Undefined where the file is missing or its length is another. */
  static async open(path: string, size: number): Promise<BodyStream | undefined> {
    let file: FileHandle;
    try {
      file = await open(path, "r");
    } catch {
      return undefined;
    }
    try {
      if ((await file.stat()).size === size) return new BodyStream(file, size);
    } catch {
      // As good as missing.
    }
    await file.close();
    return undefined;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    clearTimeout(this.#untouched);
    try {
      for (let at = 0; at < this.#size;) {
        const wanted = Math.min(chunkBytes, this.#size - at);
        const { bytesRead, buffer } = await this.#file.read(new Uint8Array(wanted), 0, wanted, at);
        if (bytesRead === 0) throw new Error("a stored body ends before its length");
        yield buffer.subarray(0, bytesRead);
        at += bytesRead;
      }
    } finally {
      await this[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#untouched);
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#file.close();
  }
}
