// The content-addressed files of viewsets, manifests and devlove files among them.
//
//   blobs/<first two hex>/<sha256>   whole, verified and synced before it got this name; never changed afterwards
//   blobs/incoming/<sha256>.part     a transfer under way or broken off: continued by range (blob-parts.ts)
//   blobs/incoming/<random>.tmp      being written by this process; swept at the next start
//
// Nothing is removed that somebody asked for lately, or since the oldest hold that is open: whoever prepares something relies on what was there when
// he asked. The renames are not durable until `settle`: one sync per directory for any number of blobs. Nothing may be committed that names a blob before it.

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
 * The most transfers of all viewsets together: enough to hide the round trips, and they leave connections for
 * journal and logs.
 */
const transfersMax = 6;
/** Read whole into memory, and not written at all where the store has it already. */
const smallBytes = 2 ** 20;
/** 256 × 3 µs: under a millisecond between two turns of the event loop. */
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

  /** `found`: whose partial files lie here. */
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

  /** Who asks relies on it from now on. */
  has(blob: { readonly sha256: Sha256; readonly size?: number | undefined }): boolean {
    this.#uses.note(blobKey(blob.sha256));
    return isBlob(this.dir, blob.sha256, blob.size);
  }

  /** Holds every blob that is asked for or stored from now until it is disposed: none of them is removed. */
  hold(): Disposable {
    return this.#uses.hold();
  }

  /** The most bytes that the blobs take; undefined if nobody has counted yet. */
  get bytesMost(): number | undefined {
    const { bytes, adoptedBytes } = this.#measured ?? {};
    return bytes === undefined ? undefined : bytes + this.#adoptedBytes - (adoptedBytes ?? 0);
  }

  /** Tell what all blobs have when they are counted; what is stored meanwhile counts beside it. */
  beginCount(): (bytes: number) => void {
    const adoptedBytes = this.#adoptedBytes;
    return (bytes) => void (this.#measured = { bytes, adoptedBytes });
  }

  /** 0 where it is not here. Does not count as asked for. */
  sizeOf(sha256: Sha256): number {
    return statSync(blobPath(this.dir, sha256), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** The directories that blobs lie in. */
  async fans(): Promise<readonly string[]> {
    const names = await readdir(this.dir);
    this.#uses.forget();
    return names.filter((name) => /^[0-9a-f]{2}$/.test(name)).map((name) => `${this.dir}/${name}`);
  }

  /** Its size; undefined: somebody may rely on it, and it stays. Its bytes go in the background. Synchronous. */
  removeUnlessUsed(sha256: Sha256): number | undefined {
    if (this.#uses.isUsed(blobKey(sha256))) return undefined;
    return this.remove(sha256);
  }

  /** Its size, 0 where it is not here. Whoever has it open keeps its bytes. */
  remove(sha256: Sha256): number {
    const path = blobPath(this.dir, sha256);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    if (size === undefined) return 0;
    // The bytes of a large file take long to free; what a crash leaves is swept at the next start.
    const gone = `${this.#incoming}/${randomBytes(12).toString("hex")}.tmp`;
    renameSync(path, gone);
    rm(gone, { force: true }).catch(() => undefined);
    return size;
  }

  /**
   * Removes it where it still is the file that was looked at: a good one may have taken its name since. False: it is another, or none. Synchronous.
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

  /** The content as it was at one moment. Throws IMPORT_IMPOSSIBLE when the file does not hold still, and what opening it throws. */
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

  /** Makes what `write` wrote the blob that it names; if it names none, it is dropped. */
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

  /** Undefined when it is not here, or is damaged or on a bad sector: then it is deleted, to be fetched again. Throws VIEWSET_INVALID beyond `bytesMax`. */
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

  /** Undefined: it is not here any more. One that not even opens is deleted. */
  async #open(sha256: Sha256): Promise<FileHandle | undefined> {
    try {
      return await open(blobPath(this.dir, sha256), "r");
    } catch (error) {
      if (isBadSector(error)) this.remove(sha256);
      else if (!isMissing(error)) throw error;
      return undefined;
    }
  }

  /** Does nothing when it is here. All who want one blob share one transfer. Throws as downloadBlob. */
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

  /** Synchronous, so that nobody sees a blob whose directory does not count as unsettled. */
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

  /** When it resolves, every blob that was here at the call survives power loss. */
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

/** Sweeps what earlier starts left behind. What they renamed may not have been settled: all directories count as touched. */
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
