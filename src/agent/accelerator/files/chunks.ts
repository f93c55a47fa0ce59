// The memory of large files on their way: pieces that are written over again once what was in them has left. Fresh memory for each piece costs more than
// reading and sending it.

/** Large files are read in pieces of this size. */
export const chunkBytes = 64 * 1024;
/** While very many are on their way, they are read in small pieces: most of them wait for visitors who take nothing. */
export const crowdedBytes = 16 * 1024;
const crowd = 256;
/** 2 MiB: as many as a worker has on their way to visitors who take them at once. */
const keptMax = 32;
/** An answer that cannot tell that its pieces have left (HTTP/2) must not hold all of them to its end. */
const heldMax = 2;

export class Chunks {
  readonly #free: Buffer<ArrayBuffer>[] = [];
  #answers = 0;

  /** For one answer, which says when it has ended. */
  lend(): LentChunks {
    this.#answers++;
    return new LentChunks(this.#free, {
      isCrowded: () => this.#answers > crowd,
      onEnd: () => this.#answers--,
    });
  }
}

type Lender = { readonly isCrowded: () => boolean; readonly onEnd: () => void };

export class LentChunks {
  readonly #free: Buffer<ArrayBuffer>[];
  readonly #lender: Lender;
  #lent: Buffer<ArrayBuffer>[] = [];
  #hasEnded = false;

  constructor(free: Buffer<ArrayBuffer>[], lender: Lender) {
    this.#free = free;
    this.#lender = lender;
  }

  /** The size of the next piece, unless less is left. */
  get pieceBytes(): number {
    return this.#lender.isCrowded() ? crowdedBytes : chunkBytes;
  }

  /** Returns memory with anything in it, of at most `chunkBytes`. */
  readonly take = (bytes: number): Buffer<ArrayBuffer> => {
    if (this.#lender.isCrowded()) return Buffer.allocUnsafeSlow(bytes);
    const chunk = this.#free.pop() ?? Buffer.allocUnsafeSlow(chunkBytes);
    this.#lent.push(chunk);
    if (this.#lent.length > heldMax) this.#lent.shift();
    return chunk.subarray(0, bytes);
  };

  /** Takes back what was lent: nobody reads it any more. What an answer that broke had is left to the garbage. */
  giveBack(): void {
    for (const chunk of this.#lent) if (this.#free.length < keptMax) this.#free.push(chunk);
    this.#lent = [];
  }

  /** Nothing more is taken. */
  end(): void {
    if (!this.#hasEnded) this.#lender.onEnd();
    this.#hasEnded = true;
  }
}
