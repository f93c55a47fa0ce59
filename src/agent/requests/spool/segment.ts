// One file of a lane: `spool/<epoch>-<lane no>-<first seq>-<part>.seg` in the format of
// core/journal/spool-frame.ts, written by appending only. If there are several parts with one first seq, the
// earlier ones could not be synced and hold nothing that counts.
//
// `bytes` counts what is whole in it; a write that fails half-way is cut off again, or the segment is written
// no further. `syncedBytes` is what survives a power loss. Creating a segment syncs it and its directory, so
// the reservation in its header holds from the first record on.

import { join } from "node:path";
import {
  encodeSegmentHeader,
  segmentHeaderBytes,
  type SegmentHeader,
} from "../../../core/journal/spool-frame.ts";
import { formatLaneId, type LaneId } from "../../../wire/request-log.ts";
import { attempt, unlinkIfThere, writeWhole, type SpoolFiles } from "./spool-files.ts";

export type SegmentName = {
  readonly lane: LaneId;
  readonly firstSeq: number;
  readonly part: number;
};

export function parseSegmentName(name: string): SegmentName | undefined {
  const match = /^([0-9a-f]{16})-(\d{1,9})-(\d{16})-(\d{1,9})\.seg$/.exec(name);
  const [, epoch, no, firstSeq, part] = match ?? [];
  if (epoch === undefined) return undefined;
  return { lane: { epoch, no: Number(no) }, firstSeq: Number(firstSeq), part: Number(part) };
}

export function formatSegmentName({ lane, firstSeq, part }: SegmentName): string {
  return `${lane.epoch}-${lane.no}-${String(firstSeq).padStart(16, "0")}-${part}.seg`;
}

type Origin = {
  readonly rank: number;
  readonly bytes: number;
  readonly file: number | undefined;
  readonly modifiedMs: number | undefined;
};

export class Segment {
  readonly name: SegmentName;
  readonly path: string;
  /** The age of the segment among all: segments made earlier have lower ranks. */
  readonly rank: number;
  /**
   * When an earlier run's segment was last written, by the wall clock; undefined for segments of this run.
   */
  readonly modifiedMs: number | undefined;
  readonly #files: SpoolFiles;
  #bytes: number;
  #syncedBytes: number;
  #file: number | undefined;

  private constructor(
    files: SpoolFiles,
    directory: string,
    name: SegmentName,
    { rank, bytes, file, modifiedMs }: Origin,
  ) {
    this.#files = files;
    this.name = name;
    this.path = join(directory, formatSegmentName(name));
    this.rank = rank;
    this.modifiedMs = modifiedMs;
    this.#bytes = this.#syncedBytes = bytes;
    this.#file = file;
  }

  /** Creates a segment. It is durable when this returns; nothing is left when it throws. */
  static create(
    files: SpoolFiles,
    directory: string,
    header: SegmentHeader,
    { part, rank }: { part: number; rank: number },
  ): Segment {
    const { epoch, laneNo: no, firstSeq } = header;
    const name = { lane: { epoch, no }, firstSeq, part };
    const path = join(directory, formatSegmentName(name));
    const file = files.create(path);
    try {
      writeWhole(files, file, encodeSegmentHeader(header), 0);
      files.datasync(file);
      files.syncDirectory(directory);
    } catch (error) {
      attempt(() => files.close(file));
      attempt(() => files.unlink(path));
      throw error;
    }
    return new Segment(files, directory, name, {
      rank,
      bytes: segmentHeaderBytes,
      file,
      modifiedMs: undefined,
    });
  }

  /** Takes over a segment as an earlier run left it. */
  static found(
    files: SpoolFiles,
    directory: string,
    name: SegmentName,
    at: { rank: number; bytes: number; modifiedMs: number },
  ): Segment {
    return new Segment(files, directory, name, { ...at, file: undefined });
  }

  get laneId(): string {
    return formatLaneId(this.name.lane);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isOpen(): boolean {
    return this.#file !== undefined;
  }

  /** Appends all of `frame` or nothing of it. Throws what the disk throws. */
  append(frame: Uint8Array): void {
    const file = this.#file;
    if (file === undefined) throw new Error(`${this.path} is closed`);
    try {
      writeWhole(this.#files, file, frame, this.#bytes);
    } catch (error) {
      if (!attempt(() => this.#files.truncate(file, this.#bytes))) this.seal();
      throw error;
    }
    this.#bytes += frame.byteLength;
  }

  /** Throws unless there is room for this many more bytes. */
  probe(bytes: number): void {
    const file = this.#file;
    if (file === undefined) throw new Error(`${this.path} is closed`);
    try {
      writeWhole(this.#files, file, new Uint8Array(bytes), this.#bytes);
    } finally {
      this.#files.truncate(file, this.#bytes);
    }
  }

  /**
   * Syncs the file. Once it has thrown, nothing written since the last sync can be trusted to be in this
   * file, and no later sync will tell.
   */
  sync(): void {
    if (this.#file === undefined || this.#syncedBytes === this.#bytes) return;
    this.#files.datasync(this.#file);
    this.#syncedBytes = this.#bytes;
  }

  /** Takes back what is not synced and closes the file. */
  sealAtSynced(): void {
    this.#bytes = this.#syncedBytes;
    const file = this.#file;
    if (file !== undefined) attempt(() => this.#files.truncate(file, this.#bytes));
    this.seal();
  }

  /**
   * Secures a segment as an earlier run left it: cuts off a torn tail, and makes durable what that run may
   * not have synced. Throws what the disk throws.
   */
  secureThrough(bytes: number): void {
    const file = this.#files.open(this.path);
    try {
      if (bytes < this.#bytes) this.#files.truncate(file, bytes);
      this.#files.datasync(file);
    } finally {
      this.#files.close(file);
    }
    this.#bytes = this.#syncedBytes = bytes;
  }

  seal(): void {
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) attempt(() => this.#files.close(file));
  }

  read(from: number, to = this.#bytes): Uint8Array<ArrayBuffer> {
    return this.#files.read(this.path, from, Math.min(to, this.#bytes));
  }

  unlink(): void {
    this.seal();
    unlinkIfThere(this.#files, this.path);
  }
}
