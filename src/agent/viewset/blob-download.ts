// Fetches one blob from central into a partial file: it continues where an earlier transfer broke off, and
// verifies the whole before anyone may use it.
//
// What a power loss left of a partial file may be wrong. So only the digest of the whole decides, and a
// continued file that fails is fetched once more from its first byte.

import type { Hash } from "node:crypto";
import { constants } from "node:fs";
import { open, rm, type FileHandle } from "node:fs/promises";
import { AccelError, codeOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { GetBlob } from "../link/central-client.ts";
import { digestOf, hashStart, writeAll } from "../../base/file-bytes.ts";

export type WantedBlob = {
  readonly sha256: Sha256;
  /** The size that a manifest states; undefined takes whatever central has, up to `bytesMax`. */
  readonly size?: number | undefined;
  readonly bytesMax: number;
  /** Whether it is worth compressing on the way. */
  readonly isText?: boolean;
};

/** The faults that hold for good: the blob has another size, or central does not have it. */
const forGood: ReadonlySet<string> = new Set(["VIEWSET_INVALID", "NOT_FOUND"]);

/**
 * Downloads a blob: when it resolves, the file at `part` is the blob, synced. Throws VIEWSET_INVALID if the
 * blob has another size than wanted, BLOB_MISMATCH if its digest differs, and what `getBlob` throws. The
 * partial file is kept for the next try unless what is thrown holds for good.
 */
export async function downloadBlob(
  part: string,
  want: WantedBlob,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const outcome = await attempt(part, want, getBlob, signal).catch(async (error: unknown) => {
      if (forGood.has(codeOf(error))) await rm(part, { force: true });
      throw error;
    });
    if (outcome === "whole") return;
    await rm(part, { force: true });
    if (outcome === "wrong")
      throw new AccelError("BLOB_MISMATCH", `blob ${want.sha256}: what arrived has another digest`);
  }
}

async function attempt(
  part: string,
  want: WantedBlob,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<"whole" | "wrong" | "wrong start"> {
  await using file = await open(part, constants.O_RDWR | constants.O_CREAT, 0o600);
  const began = await continuable(file, want);
  const start = await hashStart(file, began);
  if (start === undefined) return "wrong start"; // The file shrank while it was read.
  const hash =
    began === want.size ? start : await receive(file, start, began, want, getBlob, signal);
  if (hash === undefined || digestOf(hash) !== want.sha256)
    return began > 0 ? "wrong start" : "wrong";
  await file.sync();
  return "whole";
}

/** Returns the hash of the whole, or undefined when more arrived than there can be. */
async function receive(
  file: FileHandle,
  start: Hash,
  began: number,
  want: WantedBlob,
  getBlob: GetBlob,
  signal: AbortSignal,
): Promise<Hash | undefined> {
  // A body that is not read to its end would hold its connection.
  const giveUp = new AbortController();
  const stream = await getBlob(
    want.sha256,
    began,
    AbortSignal.any([signal, giveUp.signal]),
    // Ranges count uncompressed bytes, so only a transfer from the first byte may be compressed.
    began === 0 && want.isText === true,
  );
  try {
    checkSize(want, stream.size);
    const end = stream.size ?? want.size ?? want.bytesMax;
    let at = stream.from;
    let hash = start;
    if (at !== began) {
      // Central does not support ranges: the transfer begins at the first byte.
      await file.truncate(at);
      hash = (await hashStart(file, at)) ?? start;
    }
    for await (const chunk of stream.chunks) {
      if (at + chunk.length > end) return undefined;
      hash.update(chunk);
      await writeAll(file, chunk, at);
      at += chunk.length;
    }
    if (at < (stream.size ?? want.size ?? 0)) {
      const broken = `blob ${want.sha256} broke off after ${at} of ${end} bytes`;
      throw new AccelError("CENTRAL_UNREACHABLE", broken);
    }
    return hash;
  } catch (error) {
    giveUp.abort();
    throw error;
  }
}

/** Returns how many bytes of the partial file can be used; afterwards it has no more than these. */
async function continuable(file: FileHandle, { size }: WantedBlob): Promise<number> {
  const { size: there } = await file.stat();
  if (size !== undefined && there <= size) return there;
  await file.truncate(0);
  return 0;
}

function checkSize({ sha256, size, bytesMax }: WantedBlob, told: number | undefined): void {
  const isOther = told !== undefined && size !== undefined && told !== size;
  if (isOther || (told ?? size ?? 0) > bytesMax) {
    const wanted = size === undefined ? `at most ${bytesMax}` : `${size}`;
    throw new AccelError(
      "VIEWSET_INVALID",
      `blob ${sha256} has ${told ?? size} bytes instead of ${wanted}`,
    );
  }
}
