// One file of a lane: `spool/<epoch>-<lane no>-<first seq>-<part>.seg` in the format of
// core/journal/spool-frame.ts, written by appending only. If there are several parts with one first seq, the
// earlier ones could not be synced and hold nothing that counts.
//
// On a full disk a segment is begun in a file of the room that is kept (spool-room.ts), which zeros fill behind
// the last frame.
//
// `bytes` counts what is whole in it; a write that fails half-way is cut off again, or the segment is written
// no further. `syncedBytes` is what survives a power loss. Creating a segment syncs it and its directory, so
// the reservation in its header holds from the first record on.

import { dirname, join } from "node:path";
import {
  encodeSegmentHeader,
  segmentHeaderBytes,
  type SegmentHeader,
} from "../../../core/journal/spool-frame.ts";
import { systemCode } from "../../../core/faults.ts";
import { formatLaneId, type LaneId } from "../../../wire/request-log.ts";
import {
  attempt,
  isDiskFull,
  NoRoom,
  unlinkIfThere,
  writeWhole,
  type SpoolFiles,
} from "./spool-files.ts";
import type { SpoolRoom } from "./spool-room.ts";

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
  readonly bytesMax: number;
  readonly file: number | undefined;
  readonly modifiedMs: number | undefined;
};

/** Where a segment is begun: `nowhereElse` than in the room that is kept, or there if the disk is full and `bytes` fit. */
export type SegmentPlace = {
  readonly part: number;
  readonly rank: number;
  readonly room: SpoolRoom;
  readonly nowhereElse?: boolean;
  readonly bytes?: number;
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
  /** The most bytes that it can have; those of its file where it is in the room that is kept. */
  readonly bytesMax: number;
  readonly #files: SpoolFiles;
  #bytes: number;
  #syncedBytes: number;
  #file: number | undefined;

  private constructor(
    files: SpoolFiles,
    directory: string,
    name: SegmentName,
    { rank, bytes, bytesMax, file, modifiedMs }: Origin,
  ) {
    this.#files = files;
    this.name = name;
    this.path = join(directory, formatSegmentName(name));
    this.rank = rank;
    this.modifiedMs = modifiedMs;
    this.bytesMax = bytesMax;
    this.#bytes = this.#syncedBytes = bytes;
    this.#file = file;
  }

  /** Creates a segment. It is durable when this returns; nothing is left when it throws. */
  static create(
    files: SpoolFiles,
    directory: string,
    header: SegmentHeader,
    { part, rank, room, nowhereElse = false, bytes = 0 }: SegmentPlace,
  ): Segment {
    const { epoch, laneNo: no, firstSeq } = header;
    const name = { lane: { epoch, no }, firstSeq, part };
    const path = join(directory, formatSegmentName(name));
    const made = (file: number, bytesMax: number): Segment => {
      const origin = { rank, bytes: segmentHeaderBytes, bytesMax, file, modifiedMs: undefined };
      return new Segment(files, directory, name, origin);
    };
    try {
      if (nowhereElse) throw new NoRoom(`${directory} has no room`);
      return made(beginFile(files, path, header), Infinity);
    } catch (error) {
      const mayBeInRoom = isDiskFull(error) && room.fits(bytes);
      const file = mayBeInRoom ? beginInRoom(files, room, path, header) : undefined;
      if (file === undefined) throw error;
      return made(file, room.fileBytes);
    }
  }

  /** Takes over a segment as an earlier run left it. */
  static found(
    files: SpoolFiles,
    directory: string,
    name: SegmentName,
    at: { rank: number; bytes: number; modifiedMs: number },
  ): Segment {
    return new Segment(files, directory, name, { ...at, bytesMax: Infinity, file: undefined });
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

  get isInRoom(): boolean {
    return this.bytesMax < Infinity;
  }

  /** Appends all of `frame` or nothing of it. Throws what the disk throws. */
  append(frame: Uint8Array): void {
    const file = this.#file;
    if (file === undefined) throw new Error(`${this.path} is closed`);
    this.#assertFits(frame.byteLength);
    try {
      writeWhole(this.#files, file, frame, this.#bytes);
    } catch (error) {
      if (!attempt(() => this.#files.truncate(file, this.#bytes))) this.seal();
      throw error;
    }
    this.#bytes += frame.byteLength;
  }

  holds(bytes: number): boolean {
    return this.#bytes + bytes <= this.bytesMax;
  }

  /** Throws unless there is room for this many more bytes. */
  probe(bytes: number): void {
    const file = this.#file;
    if (file === undefined) throw new Error(`${this.path} is closed`);
    this.#assertFits(bytes);
    if (this.isInRoom) return;
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
   * Secures a segment as an earlier run left it: takes a torn tail away, which ends at `tornTo`, and makes durable what that
   * run may not have synced. Zeros behind it stay: they are blocks. Throws what the disk throws.
   */
  secureThrough(bytes: number, tornTo: number): void {
    const isRoom = tornTo < this.#bytes;
    this.#bytes = this.#syncedBytes = bytes; // Where the disk refuses, too: what is behind is never read.
    const file = this.#files.open(this.path);
    try {
      const zeros = new Uint8Array(Math.max(0, tornTo - bytes));
      if (!isRoom || !attempt(() => writeWhole(this.#files, file, zeros, bytes)))
        this.#files.truncate(file, bytes);
      this.#files.datasync(file);
    } finally {
      this.#files.close(file);
    }
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

  /** Unlinks it, or makes room of its file where some is missing. */
  release(room: SpoolRoom): void {
    this.seal();
    if (!room.keep(this.path)) unlinkIfThere(this.#files, this.path);
  }

  #assertFits(bytes: number): void {
    if (!this.holds(bytes)) throw new NoRoom(`${this.path} has no room for ${bytes} bytes`);
  }
}

function beginFile(files: SpoolFiles, path: string, header: SegmentHeader): number {
  const file = createAnew(files, path);
  try {
    writeWhole(files, file, encodeSegmentHeader(header), 0);
    files.datasync(file);
    files.syncDirectory(dirname(path));
    return file;
  } catch (error) {
    attempt(() => files.close(file));
    attempt(() => files.unlink(path));
    throw error;
  }
}

/** A file of that name is one whose creation failed, and that could not be unlinked then. */
function createAnew(files: SpoolFiles, path: string): number {
  try {
    return files.create(path);
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    files.unlink(path);
    return files.create(path);
  }
}

/** The file gets the name once the header is on disk. Returns undefined where there is no room. */
function beginInRoom(
  files: SpoolFiles,
  room: SpoolRoom,
  path: string,
  header: SegmentHeader,
): number | undefined {
  const opened = room.open();
  if (opened === undefined) return undefined;
  const { file, path: at } = opened;
  try {
    writeWhole(files, file, encodeSegmentHeader(header), 0);
    files.datasync(file);
    files.rename(at, path);
    files.syncDirectory(dirname(path));
    files.syncDirectory(dirname(at));
    return file;
  } catch (error) {
    attempt(() => files.close(file));
    room.takeBack(at, path);
    throw error;
  }
}
