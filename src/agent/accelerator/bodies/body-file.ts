// A file without a name that holds one request body. Its name is taken away as soon as it is open, so that whatever becomes of the process leaves nothing
// behind but an empty name at worst, which the next start removes.

import { randomBytes } from "node:crypto";
import { open, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";

/** What is read of it at a time. */
const pieceBytes = 64 * 1024;

export class BodyFile implements AsyncDisposable {
  readonly #handle: FileHandle;
  #size = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Throws what the system says. */
  static async open(directory: string): Promise<BodyFile> {
    const path = join(directory, randomBytes(16).toString("hex"));
    const handle = await open(path, "wx+", 0o600);
    try {
      await unlink(path);
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new BodyFile(handle);
  }

  get size(): number {
    return this.#size;
  }

  /** Throws what the system says: the disk may be full. */
  async append(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const left = bytes.length - done;
      const { bytesWritten } = await this.#handle.write(bytes, done, left, this.#size);
      done += bytesWritten;
      this.#size += bytesWritten;
    }
  }

  /** Reads all of it, each time from the beginning. */
  async *read(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < this.#size;) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, this.#size - at));
      const { bytesRead } = await this.#handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) throw new Error("the file of a request body is shorter than it was");
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}
