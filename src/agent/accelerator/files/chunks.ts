// The memory of large files on their way: pieces that are written over again once what was in them has left. Fresh memory for each piece costs more than
// reading and sending it.
//
// Larger pieces cost less for each byte. Whoever takes his pieces at once gets larger ones, and whoever does not gets smaller ones again: so what waits in memory
// is what all visitors together take in some 40 ms, and for those who read slowly it is the smallest piece.

import { ReadTurns } from "./read-turns.ts";

/** The pieces in which large files are read are of this size at first, and at least. */
export const chunkBytes = 64 * 1024;
export const chunkBytesMax = 512 * 1024;
/** While very many are on their way, they are read in small pieces: most of them wait for visitors who take nothing. */
export const crowdedBytes = 16 * 1024;
const crowd = 256;
/** A piece that has left after so long may be followed by one of twice its size; one that took longer than the other by one of half. */
const fastMs = 20;
const slowMs = 80;
/** The most pieces that are held for one answer: HTTP/2 cannot tell that they have left, and must not hold all of them to its end. */
const lentMax = 2;
/** The memory that is kept for the next answers. */
const keptBytesMax = 8 * 2 ** 20;

export class Chunks {
  /** The reads of all that this memory is for. */
  readonly reads = new ReadTurns();
  /** By size. */
  readonly #free = new Map<number, Buffer<ArrayBuffer>[]>();
  #freeBytes = 0;
  #answers = 0;

  /** For one answer, which says when it has ended. */
  lend(nowMs = (): number => performance.now()): LentChunks {
    this.#answers++;
    return new LentChunks(this, nowMs, () => this.#answers--);
  }

  /** Whether very many answers are on their way. */
  get isCrowded(): boolean {
    return this.#answers > crowd;
  }

  /** Returns memory with anything in it. */
  take(bytes: number): Buffer<ArrayBuffer> {
    const free = this.#free.get(bytes)?.pop();
    if (free === undefined) return Buffer.allocUnsafeSlow(bytes);
    this.#freeBytes -= bytes;
    return free;
  }

  giveBack(chunk: Buffer<ArrayBuffer>): void {
    const { length } = chunk;
    if (this.#freeBytes + length > keptBytesMax) return;
    const free = this.#free.get(length);
    if (free === undefined) this.#free.set(length, [chunk]);
    else free.push(chunk);
    this.#freeBytes += length;
  }

  /** Keeps nothing. */
  clear(): void {
    this.#free.clear();
    this.#freeBytes = 0;
  }
}

export class LentChunks {
  readonly #chunks: Chunks;
  readonly #nowMs: () => number;
  #lent: Buffer<ArrayBuffer>[] = [];
  #bytes = chunkBytes;
  /** When the first of those that are lent was taken. */
  #takenMs = 0;
  readonly #onEnd: () => void;
  #hasEnded = false;

  constructor(chunks: Chunks, nowMs: () => number, onEnd: () => void) {
    this.#chunks = chunks;
    this.#nowMs = nowMs;
    this.#onEnd = onEnd;
  }

  /** The size for the next piece. */
  get bytes(): number {
    return this.#chunks.isCrowded ? crowdedBytes : this.#bytes;
  }

  /** Returns memory with anything in it, of at most `chunkBytesMax`. */
  readonly take = (bytes: number): Buffer<ArrayBuffer> => {
    if (this.#chunks.isCrowded) return Buffer.allocUnsafeSlow(bytes);
    if (this.#lent.length === 0) this.#takenMs = this.#nowMs();
    const chunk = this.#chunks.take(sizeFor(bytes));
    this.#lent.push(chunk);
    // Where nobody tells that they have left (HTTP/2), they are left to the garbage.
    if (this.#lent.length > lentMax) this.#lent.shift();
    return chunk.subarray(0, bytes);
  };

  /** Takes back all that was lent: nobody reads it any more. What an answer that broke had is left to the garbage. */
  giveBack(): void {
    if (this.#lent.length === 0) return;
    const tookMs = this.#nowMs() - this.#takenMs;
    if (tookMs < fastMs) this.#bytes = Math.min(chunkBytesMax, 2 * this.#bytes);
    else if (tookMs > slowMs) this.#bytes = Math.max(chunkBytes, this.#bytes / 2);
    for (const chunk of this.#lent) this.#chunks.giveBack(chunk);
    this.#lent = [];
  }

  /** Nothing more is taken. */
  end(): void {
    if (!this.#hasEnded) this.#onEnd();
    this.#hasEnded = true;
  }
}

/** Returns the smallest size of a piece that holds so many bytes. */
function sizeFor(bytes: number): number {
  let size = chunkBytes;
  while (size < bytes) size *= 2;
  return size;
}
