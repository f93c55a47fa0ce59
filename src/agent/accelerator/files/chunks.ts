// The memory of large files on their way: pieces that are written over again once what was in them has left. Fresh memory for each piece costs more than
// reading and sending it.
//
// Larger pieces cost less for each byte. Whoever takes his pieces at once gets larger ones, and whoever does not gets smaller ones again: so what waits in memory
// is what all visitors together take in some 40 ms, and for those who read slowly it is the smallest piece.

/** The pieces in which large files are read are of this size at first, and at least. */
export const chunkBytes = 64 * 1024;
export const chunkBytesMax = 512 * 1024;
/** A piece that has left after so long may be followed by one of twice its size; one that took longer than the other by one of half. */
const fastMs = 20;
const slowMs = 80;
/** The most pieces of one answer that are waited for. */
const lentMax = 8;
/** The memory that is kept for the next answers. */
const keptBytesMax = 8 * 2 ** 20;

export class Chunks {
  /** By size. */
  readonly #free = new Map<number, Buffer<ArrayBuffer>[]>();
  #freeBytes = 0;

  /** For one answer. */
  lend(nowMs = (): number => performance.now()): LentChunks {
    return new LentChunks(this, nowMs);
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

  constructor(chunks: Chunks, nowMs: () => number) {
    this.#chunks = chunks;
    this.#nowMs = nowMs;
  }

  /** The size for the next piece. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns memory with anything in it, of at most `chunkBytesMax`. */
  readonly take = (bytes: number): Buffer<ArrayBuffer> => {
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
}

/** Returns the smallest size of a piece that holds so many bytes. */
function sizeFor(bytes: number): number {
  let size = chunkBytes;
  while (size < bytes) size *= 2;
  return size;
}
