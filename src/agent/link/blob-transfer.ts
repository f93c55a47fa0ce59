// Bodies of blobs on the wire: a download that says at which byte it begins, an upload that can be repeated.

import { open, readFile } from "node:fs/promises";
import { pipeline, type Readable } from "node:stream";
import { constants, createZstdDecompress } from "node:zlib";
import type { Dispatcher } from "undici";
import { AccelError } from "../../core/faults.ts";
import { blobCoding, blobSizeField } from "../../wire/manifest.ts";
import { unreachable } from "./refusal.ts";

export type BlobStream = {
  /** The offset of the first byte of `chunks` in the blob. */
  readonly from: number;
  /** The size of the whole blob; undefined when central does not say it. */
  readonly size: number | undefined;
  /**
   * The content. Read it at once or call `cancel`, for it holds a connection. Throws CENTRAL_UNREACHABLE when
   * it breaks off.
   */
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly cancel: () => void;
};

/** Bytes, or a file that is read while it is sent; exactly `size` bytes of it are announced and sent. */
export type BlobSource = Uint8Array | { readonly path: string; readonly size: number };

export function blobStream(
  answer: Dispatcher.ResponseData,
  rangeFrom: number,
  what: string,
): BlobStream {
  const { body, headers, statusCode } = answer;
  const coding = headers["content-encoding"];
  const isCoded = statusCode === 200 && coding === blobCoding;
  const chunks = named(isCoded ? decoded(body) : body, what);
  const cancel = (): void => void body.destroy();
  if (coding !== undefined && !isCoded) {
    cancel();
    throw new AccelError(
      "MESSAGE_INVALID",
      `${what}: the answer has a coding that was not requested`,
    );
  }
  if (statusCode !== 206) {
    const length = headers[isCoded ? blobSizeField : "content-length"];
    const size = typeof length === "string" ? Number(length) : undefined;
    return { from: 0, size, chunks, cancel };
  }
  const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(String(headers["content-range"]));
  if (range === null || Number(range[1]) !== rangeFrom) {
    cancel();
    throw new AccelError("MESSAGE_INVALID", `${what}: the answer is not the requested range`);
  }
  return { from: rangeFrom, size: Number(range[2]), chunks, cancel };
}

/**
 * Limits the window to 8 MiB, for a few bytes can announce one of gigabytes; central uses at most 2 MiB. The
 * reader limits how much is decoded.
 */
const decoderParams = { [constants.ZSTD_d_windowLogMax]: 23 };

/** Decodes a body. Leaving the iteration ends the body too. */
function decoded(body: Readable): AsyncIterable<Uint8Array> {
  const decoder = createZstdDecompress({ params: decoderParams });
  pipeline(body, decoder, () => undefined); // The reader meets the error.
  return decoder;
}

async function* named(body: AsyncIterable<Uint8Array>, what: string): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw unreachable(what, error);
  }
}

/**
 * Files of up to this many bytes are read whole: a stream costs more than the content of most files of a
 * site.
 */
const wholeBytesMax = 65_536;

export function blobUpload(source: BlobSource): {
  readonly size: number;
  readonly open: () => Promise<Uint8Array | Readable>;
} {
  if (source instanceof Uint8Array) return { size: source.byteLength, open: async () => source };
  const { path, size } = source;
  return {
    size,
    // The file is opened before the call is sent, so that a missing file does not look like a network
    // failure.
    open: async () => {
      if (size <= wholeBytesMax) return (await readFile(path)).subarray(0, size);
      const file = await open(path);
      return file.createReadStream({ end: size - 1 });
    },
  };
}
