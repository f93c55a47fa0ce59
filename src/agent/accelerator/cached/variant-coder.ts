// Coding one body, on the threads of the pool for asynchronous work.
//
// The levels are where the curves bend, measured as in core/http/content-coding.ts: one more is brotli 9 at 7 MB/s for 0.1 % less, zstd 12 at half the
// speed for 0.2 % less. A variant is made once and sent often, but makes others wait while it is made.

import { promisify } from "node:util";
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib";
import { codedBytesMax, type Coding } from "../../../core/http/content-coding.ts";

const brotliQuality = 8;
const zstdLevel = 9;
const gzipLevel = 7;
/** The size of a chunk of output: each chunk is one turn of the worker's loop. */
const chunkSize = 64 * 1024;

const byBrotli = promisify(brotliCompress);
const byZstd = promisify(zstdCompress);
const byGzip = promisify(gzip);

/** Codes a body. Undefined: it would save too little. */
export async function encode(body: Uint8Array, coding: Coding): Promise<Uint8Array | undefined> {
  const options = { chunkSize, maxOutputLength: codedBytesMax(body.length) };
  try {
    if (coding === "gzip") return await byGzip(body, { ...options, level: gzipLevel, memLevel: 9 });
    const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT, ZSTD_c_compressionLevel } = constants;
    if (coding === "zstd")
      return await byZstd(body, { ...options, params: { [ZSTD_c_compressionLevel]: zstdLevel } });
    const params = {
      [BROTLI_PARAM_QUALITY]: brotliQuality,
      [BROTLI_PARAM_SIZE_HINT]: body.length,
    };
    return await byBrotli(body, { ...options, params });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE")
      return undefined;
    throw error;
  }
}
