// Fetches certificates that are too many for the journal: the blob that the entry names, into memory,
// continued where it breaks off.

import { AccelError } from "../../core/faults.ts";
import { sha256Of, type Sha256 } from "../../core/ids.ts";
import { certificatesBytesMax } from "../../wire/vault.ts";
import type { GetBlob } from "../link/central-client.ts";
import { receiveBlob } from "../link/receive-blob.ts";

/**
 * Fetches the blob. Throws BLOB_MISMATCH, MESSAGE_INVALID if it is larger than certificates can be, and what
 * `getBlob` throws when it gets no further.
 */
export async function fetchCertificates(
  blob: Sha256,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<Uint8Array> {
  let pieces: Uint8Array[] = [];
  const sink = {
    at: 0,
    add: (chunk: Uint8Array) => {
      pieces.push(chunk);
      sink.at += chunk.length;
    },
    clear: () => {
      pieces = [];
      sink.at = 0;
    },
  };
  const want = { blob, what: "the certificates", bytesMax: certificatesBytesMax, isText: true };
  await receiveBlob(want, sink, getBlob, signal);
  const bytes = Buffer.concat(pieces);
  if (sha256Of(bytes) === blob) return bytes;
  throw new AccelError("BLOB_MISMATCH", `the certificates ${blob} arrived with another digest`);
}
