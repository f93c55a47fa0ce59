// Fetches blobs from central into the store and counts them. Those that are read whole (manifests, devlove
// files) are fetched again if the disk turns out to have damaged them.

import { AccelError, codeOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { BlobStream } from "../link/blob-transfer.ts";
import type { CentralClient, GetBlob } from "../link/central-client.ts";
import type { WantedBlob } from "./blob-download.ts";
import type { BlobStore } from "./blob-store.ts";
import type { ViewsetMetrics } from "./metrics.ts";

export class BlobFetch {
  readonly #store: BlobStore;
  readonly #central: Pick<CentralClient, "getBlob">;
  readonly #metrics: ViewsetMetrics;

  constructor(store: BlobStore, central: Pick<CentralClient, "getBlob">, metrics: ViewsetMetrics) {
    this.#store = store;
    this.#central = central;
    this.#metrics = metrics;
  }

  /**
   * Returns the bytes of a blob; fetches it if it is missing or turns out to be damaged. Throws DISK_FAILED
   * if it is damaged again.
   */
  async obtain(
    want: { readonly sha256: Sha256; readonly bytesMax: number },
    what: string,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    for (let attempt = 0; attempt < 2; attempt++) {
      await this.fetch({ ...want, isText: true }, what, signal);
      const bytes = await this.#store.readBytes(want.sha256, want.bytesMax);
      if (bytes !== undefined) return bytes;
    }
    throw new AccelError("DISK_FAILED", `${what} (blob ${want.sha256}) is damaged on this disk`);
  }

  /**
   * Fetches a blob unless it is here. Throws VIEWSET_INVALID if central does not have it, and what
   * BlobStore.fetch throws.
   */
  async fetch(want: WantedBlob, what: string, signal: AbortSignal): Promise<void> {
    let isTransfer = false;
    const getBlob: GetBlob = async (sha256, from, stop, isText) => {
      const stream = await this.#central.getBlob(sha256, from, stop, isText);
      isTransfer = true;
      return { ...stream, chunks: this.#counted(stream) };
    };
    try {
      await this.#store.fetch(want, getBlob, signal);
      if (isTransfer) this.#metrics.accel_agent_viewset_blobs_total.inc({ direction: "received" });
    } catch (error) {
      if (codeOf(error) !== "NOT_FOUND") throw error;
      const reason = `central does not have the content of ${what} (blob ${want.sha256})`;
      throw new AccelError("VIEWSET_INVALID", reason, { cause: error });
    }
  }

  async *#counted({ chunks }: BlobStream): AsyncGenerator<Uint8Array> {
    const received = this.#metrics.accel_agent_viewset_blob_bytes_total;
    for await (const chunk of chunks) {
      received.inc({ direction: "received" }, chunk.length);
      yield chunk;
    }
  }
}
