// The memory of large files on their way: pieces that are written over again once what was in them has left. Fresh memory for each piece costs more than
// reading and sending it.

/** Large files are read in pieces of this size. */
export const chunkBytes = 64 * 1024;
/** 2 MiB: as many as a worker has on their way to visitors who take them at once. */
const keptMax = 32;

export class Chunks {
  readonly #free: Buffer<ArrayBuffer>[] = [];

  /** For one answer. */
  lend(): LentChunks {
    return new LentChunks(this.#free);
  }
}

export class LentChunks {
  readonly #free: Buffer<ArrayBuffer>[];
  #lent: Buffer<ArrayBuffer>[] = [];

  constructor(free: Buffer<ArrayBuffer>[]) {
    this.#free = free;
  }

  /** Returns memory with anything in it, of at most `chunkBytes`. */
  readonly take = (bytes: number): Buffer<ArrayBuffer> => {
    const chunk = this.#free.pop() ?? Buffer.allocUnsafeSlow(chunkBytes);
    this.#lent.push(chunk);
    return chunk.subarray(0, bytes);
  };

  /** Takes back all that was lent: nobody reads it any more. What an answer that broke had is left to the garbage. */
  giveBack(): void {
    for (const chunk of this.#lent) if (this.#free.length < keptMax) this.#free.push(chunk);
    this.#lent = [];
  }
}
