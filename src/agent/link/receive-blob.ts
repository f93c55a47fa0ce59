// Receives a blob from central into a sink that holds what has arrived. A transfer that breaks off is
// continued as long as it makes progress.

import { AccelError, codeOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { GetBlob } from "./central-client.ts";

export type BlobSink = {
  /** The number of bytes that it holds. */
  readonly at: number;
  /** Appends bytes to those. */
  add(chunk: Uint8Array): Promise<void> | void;
  /** Drops everything it holds. */
  clear(): Promise<void> | void;
};

export type WantedContent = {
  readonly blob: Sha256;
  /** The name of the blob for messages, such as `bot set` or `the certificates`. */
  readonly what: string;
  readonly bytesMax: number;
  /** Whether it is worth compressing on the way. */
  readonly isText: boolean;
};

/**
 * Resolves when the sink holds the whole; the caller compares the digest. Throws MESSAGE_INVALID for more
 * than `bytesMax`, and what `getBlob` throws when it gets no further; the sink keeps what has arrived.
 */
export async function receiveBlob(
  want: WantedContent,
  sink: BlobSink,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const before = sink.at;
    try {
      return await append(want, sink, getBlob, signal);
    } catch (error) {
      // Only a transfer that broke off after some progress is continued; anything else is left to the caller.
      const isBroken = codeOf(error) === "CENTRAL_UNREACHABLE";
      if (!isBroken || sink.at <= before || signal.aborted) throw error;
    }
  }
}

async function append(
  { blob, what, bytesMax, isText }: WantedContent,
  sink: BlobSink,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<void> {
  const stream = await getBlob(blob, sink.at, signal, isText);
  try {
    if (stream.from !== sink.at) await sink.clear(); // Central does not support ranges.
    for await (const chunk of stream.chunks) {
      if (sink.at + chunk.length > bytesMax)
        throw new AccelError("MESSAGE_INVALID", `${what} ${blob} is larger than ${bytesMax} bytes`);
      await sink.add(chunk);
    }
  } finally {
    stream.cancel();
  }
  if (sink.at < (stream.size ?? 0))
    throw new AccelError("CENTRAL_UNREACHABLE", `${what} ${blob} broke off after ${sink.at} bytes`);
}
