// A large body read from its file. The file is opened, and its length compared, before anyone is promised the body; after that it may be unlinked.

import { open, type FileHandle } from "node:fs/promises";

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
