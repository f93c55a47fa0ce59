// Room on the disk that nobody else can take: files full of blocks, in which segments and marks are written where a disk is full.
//
//   spool/room/<n>   64 files of 256 KiB, smaller ones where spool.max is below 32 MiB; more where there are more than 15 lanes
//
// A file is never given back, for on ext4 a block that is freed belongs to root first where root has used what is kept for it. It is renamed: to the segment that is
// begun in it, and to room again once central has the records. So a full disk costs no record while central takes them, and up to 15 MiB of them wait where it does not.
//
// What such a file held before is written over with zeros before it is used. A file with two names is not room: a crash left the second one.

import { basename, dirname, join } from "node:path";
import { lengthWithoutZeros, segmentHeaderBytes } from "../../../core/journal/spool-frame.ts";
import {
  attempt,
  isDiskFull,
  stagedPath,
  stageFile,
  unlinkIfThere,
  writeWhole,
  type SpoolFiles,
} from "./spool-files.ts";
import { systemCode } from "../../../core/faults.ts";

const filesLeast = 64;
const fileBytesMost = 2 ** 18;
/** The most files that are as much as the spool may have. */
const filesPerSpool = 128;
/** One piece for all files: 64 of their size would be garbage that nobody collects for long. */
const zeros = new Uint8Array(2 ** 14);
/** Each lane has a segment, and so has each one of the processes before until it is sent. */
const filesPerLane = 4;
/** For the marks, and for lanes that begin while others end. */
const filesBeside = 4;
/** The most files that are made at once. */
const filesAtOnce = 4;
/** Those that no segment takes: the marks are in one and go into the other. Without marks nothing would become room again. */
const filesOfMarks = 2;
/** Room is taken only where this many times as much stays free. */
const freeTimes = 4;

/** A file of room that is open for writing, all zeros. */
type OpenRoom = { readonly file: number; readonly path: string };

export class SpoolRoom {
  readonly fileBytes: number;
  /** The lanes that are written now. */
  lanes = 0;
  readonly #filesMost: number;
  readonly #files: SpoolFiles;
  readonly #directory: string;
  /** The names of the files that are there; undefined until they were looked for. */
  #names: string[] | undefined;
  #made = 0;
  #isNew = false;
  /** What was replaced last is in a file of room. */
  #isReplacedHere = false;

  /** `directory`: that of the spool, which may have `bytesMax`. */
  constructor(files: SpoolFiles, directory: string, bytesMax: number) {
    this.#files = files;
    this.#directory = join(directory, "room");
    this.fileBytes = Math.min(fileBytesMost, Math.floor(bytesMax / filesPerSpool));
    this.#filesMost = Math.floor(bytesMax / this.fileBytes);
  }

  /** Whether a segment can be begun here that takes so many bytes more. */
  fits(bytes: number): boolean {
    return this.#isThere && segmentHeaderBytes + bytes <= this.fileBytes;
  }

  /** Makes files where some are missing and the disk has plenty. Called every second or so; never throws. */
  refill(): void {
    const names = this.#found();
    if (this.#names === undefined || names.length >= this.#filesMax) return;
    const spool = dirname(this.#directory);
    attempt(() => {
      const free = this.#files.freeBytes(spool);
      if (free < (freeTimes + 1) * this.#filesMax * this.fileBytes) return;
      // A file that is renamed into a directory without room for its name needs a block.
      if (this.#isNew) this.#files.widenDirectory(spool);
      this.#isNew = false;
      this.#files.ensureDirectory(this.#directory);
      const most = Math.min(this.#filesMax, names.length + filesAtOnce);
      while (names.length < most) {
        const name = this.#newName();
        this.#make(join(this.#directory, name));
        names.push(name);
      }
      this.#files.syncDirectory(this.#directory);
    });
  }

  /** Opens a file, for the caller to rename and to close. Undefined where none is left but those that marks need. */
  open(): OpenRoom | undefined {
    if (!this.#isThere) return undefined;
    return this.#take((path) => {
      const file = this.#files.open(path);
      try {
        this.#files.truncate(file, this.fileBytes); // A segment may have been longer.
        if (lengthWithoutZeros(this.#files.read(path, 0)) > 0) this.#writeZeros(file);
        return { file, path };
      } catch (error) {
        attempt(() => this.#files.close(file));
        throw error;
      }
    });
  }

  /** Takes back what `open` gave and nobody could use; it may have been renamed `to` already. The next one that is opened is another one. */
  takeBack(path: string, to: string): void {
    attempt(() => this.#files.rename(to, path));
    attempt(() => unlinkIfThere(this.#files, to));
    this.#found().unshift(basename(path));
  }

  /** Makes room of a file that nobody needs any more. Returns false where it is too small, there is enough, or the disk refuses. */
  keep(path: string): boolean {
    const names = this.#found();
    if (this.#names === undefined || names.length >= this.#filesMax) return false;
    const name = this.#newName();
    return attempt(() => {
      const { bytes } = this.#files.stat(path);
      if (bytes < this.fileBytes) throw new Error("too small");
      this.#files.ensureDirectory(this.#directory);
      const at = join(this.#directory, name);
      this.#files.rename(path, at);
      names.push(name);
      this.#files.syncDirectory(this.#directory);
      this.#files.syncDirectory(dirname(path));
      if (bytes > this.fileBytes) this.#cut(at); // Not before: what a crash leaves under its old name must be whole.
    });
  }

  /**
   * Replaces a file: whatever happens, it has either the old content or the new one, whole. On a full disk it is written in room, and the rest of what was there follows
   * `bytes`. What was room before becomes room again. Throws what the disk throws.
   */
  replace(path: string, bytes: Uint8Array): void {
    const staged = this.#stage(path, bytes);
    const isHere = staged !== stagedPath(path);
    const old = this.#link(path);
    try {
      this.#files.rename(staged, path);
    } catch (error) {
      if (old !== undefined) attempt(() => this.#files.unlink(join(this.#directory, old)));
      if (isHere) this.#found().unshift(basename(staged));
      else attempt(() => unlinkIfThere(this.#files, staged));
      throw error;
    }
    this.#isReplacedHere = isHere;
    if (old !== undefined) this.#found().push(old);
    if (this.#isReplacedHere) attempt(() => this.#files.syncDirectory(this.#directory));
    this.#files.syncDirectory(dirname(path));
  }

  get #filesMax(): number {
    const wanted = Math.max(filesLeast, filesPerLane * this.lanes + filesBeside);
    return Math.min(this.#filesMost, wanted);
  }

  get #isThere(): boolean {
    return this.#found().length > (this.#isReplacedHere ? filesOfMarks - 1 : filesOfMarks);
  }

  #stage(path: string, bytes: Uint8Array): string {
    try {
      return stageFile(this.#files, path, bytes);
    } catch (error) {
      const inRoom =
        isDiskFull(error) && bytes.byteLength <= this.fileBytes
          ? this.#take((at) => this.#write(at, bytes))
          : undefined;
      if (inRoom === undefined) throw error;
      return inRoom;
    }
  }

  /** Gives the file that is to be replaced a second name among the room, where it is large enough. */
  #link(path: string): string | undefined {
    const names = this.#found();
    if (this.#names === undefined || names.length >= this.#filesMax) return undefined;
    const name = this.#newName();
    const isLinked = attempt(() => {
      if (this.#files.stat(path).bytes < this.fileBytes) throw new Error("not room");
      this.#files.link(path, join(this.#directory, name));
    });
    return isLinked ? name : undefined;
  }

  #write(path: string, bytes: Uint8Array): string {
    const file = this.#files.open(path);
    try {
      writeWhole(this.#files, file, bytes, 0);
      this.#files.datasync(file);
    } finally {
      this.#files.close(file);
    }
    return path;
  }

  /** Takes the next file that is usable out of the room. One that the disk refuses stays, as the last to be tried again. */
  #take<T>(use: (path: string) => T): T | undefined {
    const names = this.#found();
    const refused: string[] = [];
    try {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const path = join(this.#directory, name);
        try {
          const { bytes, names: count } = this.#files.stat(path);
          if (count === 1 && bytes >= this.fileBytes) return use(path);
          unlinkIfThere(this.#files, path);
        } catch (error) {
          if (systemCode(error) !== "ENOENT") refused.push(name);
        }
      }
      return undefined;
    } finally {
      names.unshift(...refused);
    }
  }

  #cut(path: string): void {
    const file = this.#files.open(path);
    try {
      this.#files.truncate(file, this.fileBytes);
    } finally {
      this.#files.close(file);
    }
  }

  #make(path: string): void {
    const file = this.#files.create(path);
    try {
      this.#writeZeros(file);
      this.#files.datasync(file);
    } catch (error) {
      attempt(() => this.#files.unlink(path));
      throw error;
    } finally {
      this.#files.close(file);
    }
  }

  #writeZeros(file: number): void {
    for (let at = 0; at < this.fileBytes; at += zeros.length)
      writeWhole(this.#files, file, zeros.subarray(0, this.fileBytes - at), at);
  }

  /** The names of the files that are there; none, and `#names` is undefined, while the disk refuses to list them. */
  #found(): string[] {
    if (this.#names !== undefined) return this.#names;
    try {
      this.#names = this.#files.list(this.#directory).map((path) => basename(path));
    } catch (error) {
      if (systemCode(error) !== "ENOENT") return [];
      this.#names = []; // None was ever made.
    }
    this.#isNew = this.#names.length === 0;
    // A name is not given twice, also while the file that has it is on its way to another one.
    this.#made = Math.max(0, ...this.#names.map(Number).filter(Number.isSafeInteger));
    return this.#names;
  }

  #newName(): string {
    return String(++this.#made);
  }
}
