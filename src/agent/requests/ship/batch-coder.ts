// How batches are compressed: zstd; gzip, then not at all, once central (or what stands before it) answered 415. Remembered until the process ends.

import { promisify } from "node:util";
import { constants, gzip, zstdCompress, type ZlibOptions } from "node:zlib";
import { batchEncodings, type BatchEncoding } from "../../../wire/request-log.ts";
import { Limiter } from "./limiter.ts";

export type CodedBatch = { readonly encoding: BatchEncoding; readonly body: Uint8Array };

/** The pool for asynchronous work has four threads for the whole process, of which two may compress: the other makes variants of cached bodies. */
const compressionsMax = 1;
/** A batch of 1 MiB has some 100 KiB afterwards: in one piece, since each piece is a turn of that pool. */
const chunkSize = 256 * 2 ** 10;
const zstdLevel = 3;
const gzipLevel = 6;

const compressZstd = promisify(zstdCompress);
const compressGzip = promisify<Uint8Array, ZlibOptions, Buffer>(gzip);

export class BatchCoder {
  readonly #compressions = new Limiter(compressionsMax);
  #at = 0;

  get encoding(): BatchEncoding {
    return batchEncodings[this.#at] ?? "identity";
  }

  async code(body: Uint8Array): Promise<CodedBatch> {
    const { encoding } = this;
    if (encoding === "identity") return { encoding, body };
    return this.#compressions.run(async () => ({ encoding, body: await compress(encoding, body) }));
  }

  /** Another one is used from now on; false when there is none. Batches of other lanes may have been refused with the same one. */
  refused(encoding: BatchEncoding): boolean {
    if (encoding !== this.encoding) return true;
    if (this.#at === batchEncodings.length - 1) return false;
    this.#at++;
    return true;
  }
}

async function compress(
  encoding: Exclude<BatchEncoding, "identity">,
  body: Uint8Array,
): Promise<Uint8Array> {
  return encoding === "zstd"
    ? compressZstd(body, { chunkSize, params: { [constants.ZSTD_c_compressionLevel]: zstdLevel } })
    : compressGzip(body, { chunkSize, level: gzipLevel });
}
