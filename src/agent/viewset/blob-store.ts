// The content-addressed files of viewsets, including manifests and devlove files.
//
//   blobs/<first two hex>/<sha256>   whole, verified and synced before it got this name; never changed
//                                    afterwards
//   blobs/incoming/<sha256>.part     a transfer under way or broken off: continued by range (blob-parts.ts)
//   blobs/incoming/<random>.tmp      being written by this process; swept at the next start
//
// Nothing is removed that was asked for lately, or since the oldest open hold began: a caller that prepares
// something relies on what was there when it asked. The renames are not durable until `settle`, which syncs
// each directory once for any number of blobs. Nothing that names a blob may be committed before.

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, renameSync, statSync, type Stats } from "node:fs";
import { open, readdir, rm, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ensureDirectory, syncDirectory } from "../../base/durable-file.ts";
import { Mutex } from "../../base/mutex.ts";
import { blobKey } from "../../core/blob-list.ts";
import { blobPath } from "../../core/blob-path.ts";
import { AccelError } from "../../core/faults.ts";
import { type Sha256, sha256Of } from "../../core/ids.ts";
import { blobBytesMax } from "../../wire/manifest.ts";
import type { GetBlob } from "../link/central-client.ts";
import { downloadBlob, type WantedBlob } from "./blob-download.ts";
import { PartialFiles, sweepIncoming } from "./blob-parts.ts";
import { BlobUses } from "./blob-uses.ts";
import { inParallel, Slots } from "./parallel.ts";
import { SharedTransfers } from "./shared-transfers.ts";
import {
  readStill,
  readStillBytes,
  whileStill,
  type Source,
  type StillFile,
} from "./still-file.ts";
import { digestOf, isBadSector, isMissing, writeAll } from "../../base/file-bytes.ts";

export type StoredBlob = { readonly sha256: Sha256; readonly size: number };

/**
 * The most transfers of all viewsets together: enough to hide the round trips, and few enough to leave
 * connections for journal and logs.
 */
const transfersMax = 6;
/**
 * Files of up to this size are read whole into memory, and not written at all if the store has them already.
 */
const smallBytes = 2 ** 20;
/** 256 look-ups of 3 µs: less than a millisecond between two turns of the event loop. */
const lookupsPerTurn = 256;
const syncsMax = 8;
/** The time for which a blob stays after it was asked for, and after the end of a hold under which it was. */
const usedForMs = 600_000;

export class BlobStore {
  readonly dir: string;
  readonly parts: PartialFiles;
  readonly #incoming: string;
  readonly #transfers = new SharedTransfers();
  readonly #slots = new Slots(transfersMax);
  readonly #settling = new Mutex();
  readonly #uses: BlobUses;
  #unsettled: Set<string>;
  #adoptedBytes = 0;
  #measured: { readonly bytes: number; readonly adoptedBytes: number } | undefined;

  /** `found` names the blobs whose partial files earlier starts left here. */
  constructor(
    dir: string,
    unsettled: Iterable<string>,
    nowMs: () => number,
    found: Iterable<Sha256> = [],
  ) {
    this.dir = dir;
    this.#incoming = incomingOf(dir);
    this.#unsettled = new Set(unsettled);
    this.#uses = new BlobUses(nowMs, usedForMs);
    this.parts = new PartialFiles(this.#incoming, this.#transfers, this.#uses, nowMs, found);
  }

  /** Whether the blob is here. Whoever asks relies on it from now on, so it counts as used. */
  has(blob: { readonly sha256: Sha256; readonly size?: number | undefined }): boolean {
    this.#uses.note(blobKey(blob.sha256));
    return isBlob(this.dir, blob.sha256, blob.size);
  }

  /** Begins a hold: no blob that is asked for or stored from now until it is disposed is removed. */
  hold(): Disposable {
    return this.#uses.hold();
  }

  /** The most bytes that the blobs take; undefined if nobody has counted yet. */
  get bytesMost(): number | undefined {
    const { bytes, adoptedBytes } = this.#measured ?? {};
    return bytes === undefined ? undefined : bytes + this.#adoptedBytes - (adoptedBytes ?? 0);
  }

  /**
   * Begins a count of all blobs; call the returned function with their bytes when they are counted. What is
   * stored meanwhile is added to it.
   */
  beginCount(): (bytes: number) => void {
    const adoptedBytes = this.#adoptedBytes;
    return (bytes) => void (this.#measured = { bytes, adoptedBytes });
  }

  /** Returns the size of a blob, 0 if it is not here. This does not count as asking for it. */
  sizeOf(sha256: Sha256): number {
    return statSync(blobPath(this.dir, sha256), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Returns the directories that blobs lie in. */
  async fans(): Promise<readonly string[]> {
    const names = await readdir(this.dir);
    this.#uses.forget();
    return names.filter((name) => /^[0-9a-f]{2}$/.test(name)).map((name) => `${this.dir}/${name}`);
  }

  /**
   * Removes a blob and returns its size, or returns undefined if somebody may rely on it and it stays. It
   * works synchronously; the bytes are freed in the background.
   */
  removeUnlessUsed(sha256: Sha256): number | undefined {
    if (this.#uses.isUsed(blobKey(sha256))) return undefined;
    return this.remove(sha256);
  }

  /** Removes a blob and returns its size, 0 if it is not here. Whoever has it open can still read it. */
  remove(sha256: Sha256): number {
    const path = blobPath(this.dir, sha256);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    if (size === undefined) return 0;
    // Freeing the bytes of a large file takes long, so it is only renamed here; what a crash leaves is swept
    // at the next start.
    const gone = `${this.#incoming}/${randomBytes(12).toString("hex")}.tmp`;
    renameSync(path, gone);
    rm(gone, { force: true }).catch(() => undefined);
    return size;
  }

  /**
   * Removes a blob if it still is the file that was looked at, for a good one may have taken its name since.
   * Returns false if it is another or none. It works synchronously.
   */
  removeSeen(sha256: Sha256, seen: Stats): boolean {
    const now = statSync(blobPath(this.dir, sha256), { throwIfNoEntry: false });
    const isSame = now?.ino === seen.ino && now.dev === seen.dev && now.ctimeMs === seen.ctimeMs;
    if (isSame) this.remove(sha256);
    return isSame;
  }

  /** Returns those of the blobs that are not here. */
  async lacking<B extends StoredBlob>(blobs: Iterable<B>): Promise<readonly B[]> {
    const lacking: B[] = [];
    let looked = 0;
    for (const blob of blobs) {
      if (!this.has(blob)) lacking.push(blob);
      if (++looked % lookupsPerTurn === 0) await nextTurn();
    }
    return lacking;
  }

  /**
   * Stores the content of a file as it was at one moment. Throws IMPORT_IMPOSSIBLE when the file keeps
   * changing, is no regular file or is too large, and what opening it throws.
   */
  async ingest(source: Source, signal: AbortSignal): Promise<StoredBlob> {
    const { name } = source;
    const blob = await whileStill(source, signal, async (opened) => {
      const { stats } = opened;
      if (!stats.isFile()) throw new AccelError("IMPORT_IMPOSSIBLE", `${name} is no regular file`);
      if (stats.size > blobBytesMax)
        throw new AccelError(
          "IMPORT_IMPOSSIBLE",
          `${name} has ${stats.size} bytes, at most ${blobBytesMax} are possible`,
        );
      if (stats.size > smallBytes) return this.#copy(opened, signal);
      const bytes = await readStillBytes(opened, smallBytes, signal);
      return bytes === undefined ? undefined : this.putBytes(bytes);
    });
    if (blob === undefined)
      throw new AccelError("IMPORT_IMPOSSIBLE", `${name} keeps changing while it is read`);
    return blob;
  }

  async #copy(source: StillFile, signal: AbortSignal): Promise<StoredBlob | undefined> {
    return this.#staging(async (file) => {
      const hash = createHash("sha256");
      const size = await readStill(
        source,
        blobBytesMax,
        async (chunk, at) => {
          hash.update(chunk);
          await writeAll(file, chunk, at);
        },
        signal,
      );
      return size === undefined ? undefined : { sha256: digestOf(hash), size };
    });
  }

  async putBytes(bytes: Uint8Array): Promise<StoredBlob> {
    const blob = { sha256: sha256Of(bytes), size: bytes.length };
    if (this.has(blob)) return blob;
    await this.#staging(async (file) => {
      await writeAll(file, bytes, 0);
      return blob;
    });
    return blob;
  }

  /** Turns what `write` wrote into the blob that it returns; if it returns none, the bytes are dropped. */
  async #staging(
    write: (file: FileHandle) => Promise<StoredBlob | undefined>,
  ): Promise<StoredBlob | undefined> {
    const staged = `${this.#incoming}/${randomBytes(12).toString("hex")}.tmp`;
    let isKept = false;
    try {
      await using file = await open(staged, "wx", 0o600);
      const blob = await write(file);
      if (blob !== undefined && !this.has(blob)) {
        await file.sync();
        this.#adopt(staged, blob.sha256, blob.size);
        isKept = true;
      }
      return blob;
    } finally {
      if (!isKept) await rm(staged, { force: true });
    }
  }

  /**
   * Reads a blob; undefined when it is not here. One that is damaged or on a bad sector is deleted, to be
   * fetched again, and undefined is returned. Throws VIEWSET_INVALID if it is larger than `bytesMax`.
   */
  async readBytes(sha256: Sha256, bytesMax: number): Promise<Uint8Array | undefined> {
    if (!this.has({ sha256 })) return undefined;
    const file = await this.#open(sha256);
    if (file === undefined) return undefined;
    await using _ = file;
    const seen = await file.stat();
    if (seen.size > bytesMax)
      throw new AccelError("VIEWSET_INVALID", `blob ${sha256} has more than ${bytesMax} bytes`);
    const bytes = await file.readFile().catch((error: unknown) => {
      if (!isBadSector(error)) throw error;
      return undefined;
    });
    if (bytes !== undefined && sha256Of(bytes) === sha256) return bytes;
    this.removeSeen(sha256, seen);
    return undefined;
  }

  /**
   * Opens a blob; undefined if it is not here any more. One that a bad sector keeps from opening is deleted.
   */
  async #open(sha256: Sha256): Promise<FileHandle | undefined> {
    try {
      return await open(blobPath(this.dir, sha256), "r");
    } catch (error) {
      if (isBadSector(error)) this.remove(sha256);
      else if (!isMissing(error)) throw error;
      return undefined;
    }
  }

  /**
   * Fetches a blob unless it is here. All who want the same blob share one transfer. Throws what downloadBlob
   * throws.
   */
  async fetch(want: WantedBlob, getBlob: GetBlob, signal: AbortSignal): Promise<void> {
    if (this.has(want)) return;
    const part = this.parts.begin(want.sha256);
    const transfer = async (stop: AbortSignal): Promise<void> =>
      this.#slots.run(async () => {
        await downloadBlob(part, want, getBlob, stop);
        this.#adopt(part, want.sha256, want.size ?? statSync(part).size);
      }, stop);
    await this.#transfers.join(want, transfer, signal);
  }

  /**
   * Gives a staged file its name. It is synchronous, so that nobody sees a blob whose directory is not yet
   * noted as unsettled.
   */
  #adopt(staged: string, sha256: Sha256, size: number): void {
    const path = blobPath(this.dir, sha256);
    const fan = dirname(path);
    if (mkdirSync(fan, { recursive: true, mode: 0o700 }) !== undefined)
      this.#unsettled.add(this.dir);
    renameSync(staged, path);
    this.#adoptedBytes += size;
    this.#uses.note(blobKey(sha256));
    this.#unsettled.add(fan);
  }

  /** Syncs the directories. When it resolves, every blob that was here at the call survives power loss. */
  async settle(): Promise<void> {
    await this.#settling.run(async () => {
      const directories = this.#unsettled;
      this.#unsettled = new Set();
      try {
        const never = new AbortController().signal;
        await inParallel(directories, syncsMax, syncDirectory, never);
      } catch (error) {
        this.#unsettled = this.#unsettled.union(directories);
        throw error;
      }
    });
  }
}

const incomingOf = (dir: string): string => `${dir}/incoming`;

/**
 * Opens the store and sweeps what earlier starts left behind. What they renamed may not have been settled, so
 * all directories count as unsettled.
 */
export async function openBlobStore(
  dir: string,
  nowMs: () => number = () => performance.now(),
): Promise<BlobStore> {
  await ensureDirectory(incomingOf(dir));
  const fans = (await readdir(dir)).map((name) => `${dir}/${name}`);
  const found = await sweepIncoming(incomingOf(dir), (sha256) => isBlob(dir, sha256));
  return new BlobStore(dir, [dir, ...fans], nowMs, found);
}

function isBlob(dir: string, sha256: Sha256, size?: number): boolean {
  const stats = statSync(blobPath(dir, sha256), { throwIfNoEntry: false });
  return stats !== undefined && stats.isFile() && (size === undefined || stats.size === size);
}
