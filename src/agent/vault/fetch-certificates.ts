// Certificates that are too many for the journal: the blob that the entry names, in memory, continued where it breaks off.

import { AccelError, codeOf } from "../../core/faults.ts";
import { type Sha256, sha256Of } from "../../core/ids.ts";
import { certificatesBytesMax } from "../../wire/vault.ts";
import type { GetBlob } from "../link/central-client.ts";

type Arriving = { pieces: Uint8Array[]; at: number };

/** Throws BLOB_MISMATCH, MESSAGE_INVALID for more than there can be, and what `getBlob` throws when it gets no further. */
export async function fetchCertificates(
  blob: Sha256,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const arriving: Arriving = { pieces: [], at: 0 };
  for (;;) {
    const before = arriving.at;
    try {
      await append(blob, arriving, getBlob, signal);
      break;
    } catch (error) {
      const isBroken = codeOf(error) === "CENTRAL_UNREACHABLE";
      if (!isBroken || arriving.at <= before || signal.aborted) throw error;
    }
  }
  const bytes = Buffer.concat(arriving.pieces);
  if (sha256Of(bytes) === blob) return bytes;
  throw new AccelError("BLOB_MISMATCH", `the certificates ${blob} arrived with another digest`);
}

async function append(
  blob: Sha256,
  arriving: Arriving,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<void> {
  const stream = await getBlob(blob, arriving.at, signal, true);
  try {
    if (stream.from !== arriving.at) Object.assign(arriving, { pieces: [], at: 0 }); // Central does not do ranges.
    for await (const chunk of stream.chunks) {
      arriving.pieces.push(chunk);
      arriving.at += chunk.length;
      if (arriving.at > certificatesBytesMax)
        throw new AccelError(
          "MESSAGE_INVALID",
          `the certificates ${blob} are larger than ${certificatesBytesMax} bytes`,
        );
    }
  } finally {
    stream.cancel();
  }
  if (arriving.at < (stream.size ?? 0))
    throw new AccelError(
      "CENTRAL_UNREACHABLE",
      `the certificates ${blob} broke off after ${arriving.at} bytes`,
    );
}
