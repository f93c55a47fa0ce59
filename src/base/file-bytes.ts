// Bytes of our own files: digests, bounded reads, whole writes.

import { createHash, type Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { systemCode } from "../core/faults.ts";
import { parseSha256, type Sha256 } from "../core/ids.ts";

const chunkBytes = 2 ** 20;

export function digestOf(hash: Hash): Sha256 {
  const sha256 = parseSha256(hash.digest("hex"));
  if (sha256 === undefined) throw new TypeError("not a SHA-256 hash");
  return sha256;
}

/** Returns whether the disk can no longer read what lay there. */
export function isBadSector(error: unknown): boolean {
  return systemCode(error) === "EIO";
}

export function isMissing(error: unknown): boolean {
  return systemCode(error) === "ENOENT";
}

export async function writeAll(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at, position + at);
    at += bytesWritten;
  }
}

/** Returns the digest of the first `length` bytes, to be continued, or undefined if there are fewer. */
export async function hashStart(file: FileHandle, length: number): Promise<Hash | undefined> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, length));
  for (let at = 0; at < length;) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, length - at), at);
    if (bytesRead === 0) return undefined;
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
  return hash;
}
