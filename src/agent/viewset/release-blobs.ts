// Which blobs a release needs, by the digest of its manifest: read once and remembered, since a digest never names anything else. Bounded.

import type { BlobList } from "../../core/blob-list.ts";
import type { Sha256 } from "../../core/ids.ts";
import { devloveBytesMax } from "../../wire/devlove.ts";
import { manifestBytesMax } from "../../wire/manifest.ts";
import type { BlobStore } from "./blob-store.ts";
import { allBlobsOf, readTakenManifest } from "./manifest-blobs.ts";

/** Of all that are remembered: 16 bytes each, 64 MiB. Those that were asked for longest ago are read again. */
const blobsMax = 4 * 2 ** 20;

export class ReleaseBlobs {
  readonly #store: BlobStore;
  readonly #lists = new Map<Sha256, BlobList>();
  #blobs = 0;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** Undefined: its manifest is missing or damaged, or is none. */
  async of(manifest: Sha256): Promise<BlobList | undefined> {
    const known = this.#lists.get(manifest);
    if (known !== undefined) {
      this.note(manifest, known);
      return known;
    }
    const bytes = await this.#store.readBytes(manifest, manifestBytesMax).catch(() => undefined);
    if (bytes === undefined) return undefined;
    try {
      const { manifest: contents } = readTakenManifest(bytes);
      // The size of the devlove file stands nowhere: it counts with what it may have at most.
      const list = allBlobsOf({ sha256: manifest, size: bytes.length }, contents, devloveBytesMax);
      this.note(manifest, list);
      return list;
    } catch {
      return undefined;
    }
  }

  note(manifest: Sha256, list: BlobList): void {
    const before = this.#lists.get(manifest);
    if (before !== undefined) this.#blobs -= before.keys.length;
    this.#lists.delete(manifest);
    this.#lists.set(manifest, list);
    this.#blobs += list.keys.length;
    for (const [oldest, { keys }] of this.#lists) {
      if (this.#blobs <= blobsMax || oldest === manifest) return;
      this.#lists.delete(oldest);
      this.#blobs -= keys.length;
    }
  }
}
