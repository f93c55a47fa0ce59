// The blobs that a release needs, small enough to be held for every release on a host: a key of 48 bits and a size each.
//
// Two blobs with the same key make a file stay too long, and never make one go missing: keys only say what
// must stay.

import type { Sha256 } from "./ids.ts";

export type BlobList = {
  /** Each key once, in no particular order. */
  readonly keys: Float64Array;
  readonly sizes: Float64Array;
};

const keyChars = 12; // 48 bits: whole numbers that a double holds.

export function blobKey(sha256: string): number {
  return Number.parseInt(sha256.slice(0, keyChars), 16);
}

export function blobList(
  blobs: Iterable<{ readonly sha256: Sha256; readonly size: number }>,
): BlobList {
  const sizes = new Map<number, number>();
  for (const { sha256, size } of blobs) sizes.set(blobKey(sha256), size);
  return { keys: Float64Array.from(sizes.keys()), sizes: Float64Array.from(sizes.values()) };
}

/** Returns the bytes of all blobs; one that several lists share counts once. */
export function unionBytes(lists: Iterable<BlobList>): number {
  const seen = new Set<number>();
  let bytes = 0;
  for (const { keys, sizes } of lists) {
    for (const [i, key] of keys.entries()) {
      if (seen.has(key)) continue;
      seen.add(key);
      bytes += sizes[i] ?? 0;
    }
  }
  return bytes;
}

export function sumBytes(lists: Iterable<BlobList>): number {
  let bytes = 0;
  for (const { sizes } of lists) for (const size of sizes) bytes += size;
  return bytes;
}
