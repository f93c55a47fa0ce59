// The bytes of files beyond one request. Of blobs: small ones whole in memory, middle-sized ones too when they are asked for again, larger ones by descriptors that stay
// open. All go by digest, for equal digests are equal bytes, whatever site or version they belong to. Of the small files of a host's own folder: those that directory-files.ts keeps.
//
// What is in memory was read once and had its digest then: no damage of the disk reaches a visitor from there. A descriptor is used as long as the file behind
// its name is the same one: a blob that was damaged and fetched again is another file.

import { statSync, type Stats } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { blobPath } from "../../../core/blob-path.ts";
import { sha256Of, type Sha256 } from "../../../core/ids.ts";
import { HotMemory } from "../../cache/worker/hot-memory.ts";
import { Chunks } from "./chunks.ts";
import { readExactly, wholeBytesMax, wholeRange } from "./site-files.ts";

export type Blob = { readonly sha256: Sha256; readonly size: number };

/** Larger ones are read from the disk each time: the kernel keeps those warm, and in their place memory has many small ones. */
const heldBytesMax = 256 * 1024;
/** The most middle-sized blobs that are known to have been asked for once. */
const onceMax = 1_024;
/** Beside the bytes: the map's slot, the array and its buffer. */
const overheadBytes = 256;
const openMax = 64;
/** A descriptor that nobody used for so long is closed: it keeps the room of a blob that was removed. */
const idleMs = 5_000;

type OpenBlob = {
  readonly sha256: Sha256;
  readonly handle: FileHandle;
  readonly stats: Stats;
  users: number;
  usedMs: number;
};

/** The file has the blob's size, and other bytes. */
export class OtherBytes extends Error {
  constructor({ sha256 }: Blob) {
    super(`blob ${sha256} has bytes that do not match its digest`);
  }
}

/** A descriptor for one request. Disposing gives it back. */
export type BorrowedBlob = AsyncDisposable & { readonly handle: FileHandle };

export type BlobBodiesOptions = {
  readonly blobsDir: string;
  /** For the small ones; 0: none is kept. */
  readonly memoryMax: number;
};

export class BlobBodies implements AsyncDisposable {
  readonly chunks = new Chunks();
  readonly #blobsDir: string;
  readonly #memoryMax: number;
  readonly #held: HotMemory<string, Uint8Array>;
  /** Middle-sized ones that were asked for, and may be asked for again. */
  readonly #once = new Set<Sha256>();
  /** In order of last use. */
  readonly #open = new Map<Sha256, OpenBlob>();
  #sweeping: NodeJS.Timeout | undefined;

  constructor({ blobsDir, memoryMax }: BlobBodiesOptions) {
    this.#blobsDir = blobsDir;
    this.#memoryMax = memoryMax;
    this.#held = new HotMemory(memoryMax);
  }

  /** Returns a blob that is in memory. Its bytes must not be changed. */
  held(sha256: Sha256): Uint8Array | undefined {
    return this.#held.get(sha256);
  }

  /** Returns the bytes of a file of this host that is what it was when they were kept. They must not be changed. */
  heldFile(identity: string): Uint8Array | undefined {
    return this.#held.get(identity);
  }

  /** Keeps the bytes of a file of this host by what the file is (`identityOf`), which is no digest of a blob. */
  keepFile(identity: string, bytes: Uint8Array): void {
    this.#held.put(identity, bytes, bytes.length + overheadBytes);
  }

  /** Whether a blob that is asked for now is to be read whole, and kept. */
  isToKeep(blob: Blob): boolean {
    const { sha256, size } = blob;
    if (isSmall(blob)) return true;
    if (size > heldBytesMax || size + overheadBytes > this.#memoryMax) return false;
    if (this.#once.delete(sha256)) return true;
    if (this.#once.size >= onceMax) this.#once.clear();
    this.#once.add(sha256);
    return false;
  }

  /** Reads a blob whole from the disk, and keeps it. Throws what the disk throws, OtherBytes, and for a file of another size. */
  async read(blob: Blob): Promise<Uint8Array> {
    const handle = await open(blobPath(this.#blobsDir, blob.sha256), "r");
    try {
      refuseOtherSize(await handle.stat(), blob);
      const bytes = await readExactly(handle, wholeRange(blob.size));
      if (sha256Of(bytes) !== blob.sha256) throw new OtherBytes(blob);
      this.#held.put(blob.sha256, bytes, bytes.length + overheadBytes);
      return bytes;
    } finally {
      await handle.close();
    }
  }

  /** Opens a blob, or lends the descriptor that is open already. Throws what the disk throws, and for a file of another size. */
  async borrow(blob: Blob): Promise<BorrowedBlob> {
    const kept = this.#open.get(blob.sha256);
    if (kept !== undefined && this.#isSame(kept, blob)) return this.#lend(kept);
    const handle = await open(blobPath(this.#blobsDir, blob.sha256), "r");
    try {
      const stats = await handle.stat();
      refuseOtherSize(stats, blob);
      // Another request may have opened it meanwhile: the newer one is kept.
      this.#drop(this.#open.get(blob.sha256));
      return this.#lend({ sha256: blob.sha256, handle, stats, users: 0, usedMs: 0 });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweeping);
    this.#held.clear();
    const idle = [...this.#open.values()].filter(({ users }) => users === 0);
    this.#open.clear();
    await Promise.all(idle.map(async ({ handle }) => handle.close()));
  }

  #isSame({ stats: { dev, ino } }: OpenBlob, { sha256, size }: Blob): boolean {
    const now = statSync(blobPath(this.#blobsDir, sha256), { throwIfNoEntry: false });
    return now !== undefined && now.dev === dev && now.ino === ino && now.size === size;
  }

  #lend(blob: OpenBlob): BorrowedBlob {
    blob.users++;
    // Last in the order of use.
    this.#open.delete(blob.sha256);
    this.#open.set(blob.sha256, blob);
    for (const oldest of this.#open.values()) {
      if (this.#open.size <= openMax) break;
      this.#drop(oldest);
    }
    this.#sweeping ??= setInterval(() => this.#sweep(), idleMs).unref();
    const takeBack = async (): Promise<void> => {
      blob.users--;
      blob.usedMs = performance.now();
      if (blob.users === 0 && this.#open.get(blob.sha256) !== blob) await blob.handle.close();
    };
    return { handle: blob.handle, [Symbol.asyncDispose]: takeBack };
  }

  /** Lends it to nobody any more. Whoever uses it last closes it. */
  #drop(blob: OpenBlob | undefined): void {
    if (blob === undefined) return;
    this.#open.delete(blob.sha256);
    // It was only read from: its closing says nothing about its bytes.
    if (blob.users === 0) blob.handle.close().catch(() => undefined);
  }

  #sweep(): void {
    const untilMs = performance.now() - idleMs;
    for (const blob of this.#open.values())
      if (blob.users === 0 && blob.usedMs < untilMs) this.#drop(blob);
    if (this.#open.size > 0) return;
    this.chunks.clear();
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }
}

/** Blobs were verified when they were stored and never change; one of another size is damaged. */
function refuseOtherSize(stats: Stats, { sha256, size }: Blob): void {
  if (stats.size !== size) throw new Error(`blob ${sha256} is damaged`);
}

/** Whether a blob is so small that it is read whole. */
export const isSmall = ({ size }: Blob): boolean => size <= wholeBytesMax;
