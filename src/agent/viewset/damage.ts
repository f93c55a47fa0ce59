// Blobs that lie here in their size and are not their content any more: a disk that rots, or someone who wrote into one. What only has another size, or is
// missing, shows without that.

import { open } from "node:fs/promises";
import { Mutex } from "../../base/mutex.ts";
import { blobPath } from "../../core/blob-path.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { BlobStore } from "./blob-store.ts";
import { digestOf, hashStart, isBadSector } from "./file-bytes.ts";

export class Damage {
  readonly #store: Pick<BlobStore, "dir" | "remove">;
  /** One after another: what one removed may have been fetched again when the next looks. */
  readonly #turns = new Mutex();

  constructor(store: Pick<BlobStore, "dir" | "remove">) {
    this.#store = store;
  }

  /** Removes it where its bytes are wrong or cannot be read; whoever wants it fetches it again. */
  async drop(sha256: Sha256): Promise<void> {
    await this.#turns.run(async () => {
      if (await isDamaged(blobPath(this.#store.dir, sha256), sha256)) this.#store.remove(sha256);
    });
  }
}

async function isDamaged(path: string, sha256: Sha256): Promise<boolean> {
  try {
    await using file = await open(path, "r");
    const hash = await hashStart(file, (await file.stat()).size);
    return hash === undefined || digestOf(hash) !== sha256;
  } catch (error) {
    return isBadSector(error); // Without a descriptor, or the file, there is nothing to judge.
  }
}
