// Reads files that others write: it takes one state of the file, or nothing.
//
// A file that was written within the last tick of the file system's clock could change again without its
// times changing, so it is left alone until it is older.

import { createHash } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { sleep } from "../../base/wait.ts";
import type { Sha256 } from "../../core/ids.ts";
import { digestOf } from "../../base/file-bytes.ts";

/** A clock tick of the file system (10 ms at 100 Hz) with a margin. */
const quietMs = 20;
const chunkBytes = 2 ** 20;
const triesMax = 4;
/** The pause before the second try; it doubles: 50 + 100 + 200 ms in all. */
const pauseMs = 50;

/** A file that is opened anew for each try, since its name may lead to another file by then. */
export type Source = {
  /** The name of the file in reasons. */
  readonly name: string;
  open(): Promise<FileHandle>;
};

/** Makes a source of whatever the name leads to. */
export function sourceAt(path: string): Source {
  return {
    name: path,
    // Without O_NONBLOCK, opening a pipe waits for whoever writes to it.
    open: async () => open(path, constants.O_RDONLY | constants.O_NONBLOCK),
  };
}

/** An open file and what it was when it was opened. */
export type StillFile = { readonly file: FileHandle; readonly stats: BigIntStats };

/**
 * Calls `take` until it returns something; it returns undefined when the file changed meanwhile. Returns
 * undefined if the file never held still. Throws what opening it throws.
 */
export async function whileStill<T>(
  source: Source,
  signal: AbortSignal,
  take: (opened: StillFile) => Promise<T | undefined>,
  wait: (ms: number, stop: AbortSignal) => Promise<unknown> = sleep,
): Promise<T | undefined> {
  for (let attempt = 0; attempt < triesMax; attempt++) {
    if (attempt > 0) await wait(pauseMs * 2 ** (attempt - 1), signal);
    signal.throwIfAborted();
    await using file = await source.open();
    let stats = await file.stat({ bigint: true });
    if (isYoung(stats)) {
      await wait(quietMs, signal);
      stats = await file.stat({ bigint: true });
      if (isYoung(stats)) continue;
    }
    const taken = await take({ file, stats });
    if (taken !== undefined) return taken;
  }
  return undefined;
}

function isYoung({ ctimeNs }: BigIntStats): boolean {
  return Math.abs(Date.now() - Number(ctimeNs / 1_000_000n)) < quietMs;
}

/**
 * Feeds the file to `take` piece by piece; the buffer is used again for each piece. Returns the size, or
 * undefined when the file changed meanwhile or is longer than `bytesMax`.
 */
export async function readStill(
  { file, stats: before }: StillFile,
  bytesMax: number,
  take: (chunk: Uint8Array, at: number) => Promise<void> | void,
  signal: AbortSignal,
): Promise<number | undefined> {
  const size = Number(before.size);
  if (size > bytesMax) return undefined;
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, size + 1));
  let at = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) break;
    if (at + bytesRead > size) return undefined;
    await take(buffer.subarray(0, bytesRead), at);
    at += bytesRead;
  }
  const after = await file.stat({ bigint: true });
  const isSame = before.mtimeNs === after.mtimeNs && before.ctimeNs === after.ctimeNs;
  return isSame && at === size ? size : undefined;
}

/**
 * Reads a file without keeping its bytes and returns what it holds, or undefined if it never held still, is
 * no regular file or is longer than `bytesMax`.
 */
export async function readBlob(
  source: Source,
  bytesMax: number,
  signal: AbortSignal,
): Promise<{ readonly sha256: Sha256; readonly size: number } | undefined> {
  return whileStill(source, signal, async (opened) => {
    if (!opened.stats.isFile()) return undefined;
    const hash = createHash("sha256");
    const size = await readStill(opened, bytesMax, (chunk) => void hash.update(chunk), signal);
    return size === undefined ? undefined : { sha256: digestOf(hash), size };
  });
}

/** Returns the whole content, or undefined as readStill does. */
export async function readStillBytes(
  opened: StillFile,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  const size = await readStill(
    opened,
    bytesMax,
    (chunk) => {
      chunks.push(Buffer.from(chunk)); // A copy, for the buffer is used again.
    },
    signal,
  );
  if (size === undefined) return undefined;
  return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
}
