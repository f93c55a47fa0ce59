// A request body that was taken in before its origin is asked: in memory up to 1 MiB and as long as the memory of the worker has room, then in a file. Memory is
// taken as bytes come, never as they are promised.

import { BodyFile } from "./body-file.ts";
import { BodyFault } from "./body-pieces.ts";
import type { SharedBudget } from "./shared-budget.ts";

/** Longer bodies go to a file. */
export const memoryBodyMax = 2 ** 20;
const leastBufferBytes = 4 * 1024;

/** Bytes of one worker's memory. */
export class MemoryRoom {
  readonly #bytesMax: number;
  taken = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  take(bytes: number): boolean {
    if (this.taken + bytes > this.#bytesMax) return false;
    this.taken += bytes;
    return true;
  }

  give(bytes: number): void {
    this.taken -= bytes;
  }
}

export type HeldBodyRooms = {
  readonly memory: MemoryRoom;
  readonly disk: SharedBudget;
  /** Where files are made. */
  readonly directory: string;
};

const nothing = Buffer.alloc(0);

export class HeldBody implements AsyncDisposable {
  length = 0;
  readonly #rooms: HeldBodyRooms;
  #memory: Buffer = nothing;
  /** The bytes of the room in memory that it has. */
  #taken = 0;
  #file: BodyFile | undefined;
  /** The bytes of the room on disk that it has. */
  #filed = 0;

  constructor(rooms: HeldBodyRooms) {
    this.#rooms = rooms;
  }

  get isFile(): boolean {
    return this.#file !== undefined;
  }

  /** The whole body: in one piece, or what reads it from its beginning. */
  get content(): Uint8Array | (() => AsyncGenerator<Uint8Array>) {
    const file = this.#file;
    return file === undefined ? this.#memory.subarray(0, this.length) : () => file.read();
  }

  /** Undefined: it is done. Throws a BodyFault where there is no room. */
  append(piece: Uint8Array): Promise<void> | undefined {
    if (this.#file !== undefined) return this.#write(piece);
    if (!this.#remember(piece)) return this.#moveToFile(piece);
    this.length += piece.length;
    return undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#forget();
    this.#rooms.disk.give(this.#filed);
    this.#filed = 0;
    await this.#file?.[Symbol.asyncDispose]();
  }

  /** False: it has to become a file. */
  #remember(piece: Uint8Array): boolean {
    const size = this.length + piece.length;
    if (size <= this.#memory.length) {
      this.#memory.set(piece, this.length);
      return true;
    }
    if (size > memoryBodyMax) return false;
    // A body that comes in one piece is kept as it came.
    const wanted = this.length === 0 ? piece.length : roundedUp(size);
    if (!this.#rooms.memory.take(wanted - this.#taken)) return false;
    this.#taken = wanted;
    const { buffer, byteOffset, length } = piece;
    // A small piece must not keep the whole read in memory that it came with.
    if (this.length === 0 && length >= buffer.byteLength / 2)
      this.#memory = Buffer.from(buffer, byteOffset, length);
    else {
      const larger = Buffer.allocUnsafeSlow(wanted);
      larger.set(this.#memory.subarray(0, this.length));
      larger.set(piece, this.length);
      this.#memory = larger;
    }
    return true;
  }

  #forget(): void {
    this.#memory = nothing;
    this.#rooms.memory.give(this.#taken);
    this.#taken = 0;
  }

  async #moveToFile(piece: Uint8Array): Promise<void> {
    const begun = this.#memory.subarray(0, this.length);
    try {
      this.#file = await BodyFile.open(this.#rooms.directory);
    } catch (error) {
      throw noRoom(error);
    }
    this.length = 0;
    await this.#write(begun);
    this.#forget();
    await this.#write(piece);
  }

  async #write(piece: Uint8Array): Promise<void> {
    const { disk } = this.#rooms;
    if (!disk.take(piece.length))
      throw new BodyFault("no-room", `the files of request bodies have ${disk.bytesMax} bytes`);
    this.#filed += piece.length;
    try {
      await this.#file?.append(piece);
    } catch (error) {
      throw noRoom(error);
    }
    this.length += piece.length;
  }
}

function roundedUp(bytes: number): number {
  let size = leastBufferBytes;
  while (size < bytes) size *= 2;
  return Math.min(size, memoryBodyMax);
}

/** Whatever the disk says, it cannot be kept. */
function noRoom(error: unknown): BodyFault {
  return new BodyFault("no-room", error instanceof Error ? error.message : String(error));
}
