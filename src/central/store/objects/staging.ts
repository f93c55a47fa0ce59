// Where what is received for a bucket lies until it is there: it is digested before anything is sent, and can be sent twice.
//
//   <state_dir>/objects/<random>     removed at the next start
//
// Nothing here outlives a crash, so nothing is synced.

import { createHash } from "node:crypto";
import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ensureDirectory } from "../../../base/durable-file.ts";
import type { Sha256 } from "../../../core/ids.ts";

export type StagedObject = AsyncDisposable & {
  readonly path: string;
  readonly size: number;
  readonly sha256: Sha256;
};

export type ObjectReceived =
  | { readonly kind: "staged"; readonly object: StagedObject }
  | { readonly kind: "too large" }
  /** The sender broke off, with this error. */
  | { readonly kind: "aborted"; readonly error: unknown };

export class ObjectStaging {
  readonly #directory: string;
  readonly #randomBytes: (count: number) => Uint8Array;

  /** The directory is there. */
  constructor(directory: string, randomBytes: (count: number) => Uint8Array) {
    this.#directory = directory;
    this.#randomBytes = randomBytes;
  }

  /** Throws what the disk throws. Disposing what was staged removes it. */
  async receive(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<ObjectReceived> {
    const path = join(this.#directory, Buffer.from(this.#randomBytes(12)).toString("hex"));
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => rm(path, { force: true }));
    await using file = await open(path, "wx", 0o600);
    const hash = createHash("sha256");
    const chunks = body[Symbol.asyncIterator]();
    let size = 0;
    for (;;) {
      const next = await nextOf(chunks);
      if ("error" in next) return { kind: "aborted", error: next.error };
      if (next.done === true) break;
      size += next.value.byteLength;
      if (size > bytesMax) {
        await chunks.return?.();
        return { kind: "too large" };
      }
      hash.update(next.value);
      await file.writeFile(next.value);
    }
    const owned = stack.move();
    return {
      kind: "staged",
      object: {
        path,
        size,
        sha256: hash.digest("hex") as Sha256, // The one form of a digest in hex.
        [Symbol.asyncDispose]: async () => owned.disposeAsync(),
      },
    };
  }
}

async function nextOf(
  chunks: AsyncIterator<Uint8Array>,
): Promise<IteratorResult<Uint8Array> | { readonly error: unknown }> {
  try {
    return await chunks.next();
  } catch (error) {
    return { error };
  }
}

/** Makes the directory, and empties it. */
export async function openStaging(
  directory: string,
  randomBytes: (count: number) => Uint8Array,
): Promise<ObjectStaging> {
  await ensureDirectory(directory);
  for (const name of await readdir(directory)) await rm(join(directory, name), { force: true });
  return new ObjectStaging(directory, randomBytes);
}
