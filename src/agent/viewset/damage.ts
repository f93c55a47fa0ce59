// Finds blobs that have the right size but no longer the right bytes: the disk rots, or someone wrote into
// one. A blob that is missing or has another size is noticed without this.

import { open } from "node:fs/promises";
import { Mutex } from "../../base/mutex.ts";
import { blobPath } from "../../core/blob-path.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { BlobStore } from "./blob-store.ts";
import { digestOf, hashStart, isBadSector } from "../../base/file-bytes.ts";

export class Damage {
  readonly #store: Pick<BlobStore, "dir" | "remove" | "removeSeen">;
  /** Files are checked one after another, so that the disk is not read for several at once. */
  readonly #turns = new Mutex();

  constructor(store: Pick<BlobStore, "dir" | "remove" | "removeSeen">) {
    this.#store = store;
  }

  /**
   * Removes a blob if its bytes are wrong or cannot be read; whoever wants it fetches it again. A file that
   * has taken its place meanwhile stays.
   */
  async drop(sha256: Sha256): Promise<void> {
    await this.#turns.run(async () => this.#drop(sha256));
  }

  async #drop(sha256: Sha256): Promise<void> {
    try {
      await using file = await open(blobPath(this.#store.dir, sha256), "r");
      const seen = await file.stat();
      const hash = await hashStart(file, seen.size).catch((error: unknown) => {
        if (!isBadSector(error)) throw error;
        return undefined;
      });
      if (hash === undefined || digestOf(hash) !== sha256) this.#store.removeSeen(sha256, seen);
    } catch (error) {
      // Without the file or a free descriptor there is nothing to judge.
      if (isBadSector(error)) this.#store.remove(sha256);
    }
  }
}
