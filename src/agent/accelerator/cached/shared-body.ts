// One body from an origin, read by all visitors who share its fetch: each at their own pace, in bounded memory.
//
// Its beginning is kept while it fits the window, so that visitors can still join; behind that, pieces go when all have read them. The origin
// is read no further than the window ahead of the slowest reader. One who holds up others leaves the stream and gets the rest from the
// store, once it is there.

import type { StopSignal } from "../../../base/stop.ts";

/** The bytes that are kept for visitors who join and for readers of different pace: with 512 fetches at once 128 MiB. */
const windowBytes = 256 * 1024;
/** A reader who has held up others for so long is too slow. */
const lagMs = 250;

/**
 * Reads the stored body from a byte on, for a reader who left the stream. Fails if the body was not stored.
 */
export type RestOf = (fromByte: number) => AsyncIterable<Uint8Array>;

type Reader = { at: number; bytes: number; isWaiting: boolean; isBehind: boolean };

export class SharedBody {
  readonly #chunks: Uint8Array[] = [];
  readonly #readers = new Set<Reader>();
  readonly #restOf: RestOf;
  /** Number of the first piece still kept. */
  #first = 0;
  #keptBytes = 0;
  #isEnded = false;
  #failure: Error | undefined;
  #changed = Promise.withResolvers<void>();
  #room = Promise.withResolvers<void>();
  #canRest = true;
  #isWanted = true;
  #isLeft = false;

  constructor(restOf: RestOf) {
    this.#restOf = restOf;
  }

  /** Whether somebody new would still get it from its first byte. */
  get isJoinable(): boolean {
    return this.#first === 0 && this.#failure === undefined;
  }

  /** Somebody was too slow, and waits for the rest from the store. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** Notes whether anybody is there who will read it. While nobody is, it is not kept for anybody. */
  setWanted(isWanted: boolean): void {
    this.#isWanted = isWanted;
    this.#drop();
  }

  /** Notes that it is not going to be stored: from now on the slowest reader sets the pace. */
  withoutStore(): void {
    this.#canRest = false;
  }

  /** Resolves when there is room for the next piece. */
  async append(chunk: Uint8Array): Promise<void> {
    this.#chunks.push(chunk);
    this.#keptBytes += chunk.length;
    this.#tell();
    this.#drop();
    while (this.#keptBytes > windowBytes) {
      this.#room = Promise.withResolvers();
      const lag = setInterval(() => this.#leaveBehind(), lagMs);
      await this.#room.promise;
      clearInterval(lag);
    }
  }

  end(): void {
    this.#isEnded = true;
    this.#tell();
  }

  fail(error: Error): void {
    this.#failure = error;
    this.#tell();
  }

  /**
   * Reads from the first byte; to be called while the body is joinable. Fails as the body does, and when its
   * reader leaves.
   */
  read(stop: StopSignal): AsyncGenerator<Uint8Array> {
    const reader: Reader = { at: 0, bytes: 0, isWaiting: false, isBehind: false };
    this.#readers.add(reader);
    return this.#read(reader, stop);
  }

  async *#read(reader: Reader, stop: StopSignal): AsyncGenerator<Uint8Array> {
    const wake = (): void => this.#tell();
    stop.addEventListener("abort", wake);
    try {
      while (!reader.isBehind) {
        stop.throwIfAborted();
        const chunk = this.#chunks[reader.at - this.#first];
        if (chunk !== undefined) {
          reader.at++;
          reader.bytes += chunk.length;
          this.#drop();
          yield chunk;
        } else if (this.#failure !== undefined) throw this.#failure;
        else if (this.#isEnded) return;
        else {
          reader.isWaiting = true;
          await this.#changed.promise;
          reader.isWaiting = false;
        }
      }
    } finally {
      stop.removeEventListener("abort", wake);
      this.#readers.delete(reader);
      this.#drop();
    }
    yield* this.#restOf(reader.bytes);
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /**
   * Drops what all have read, once the whole is larger than the window; when nobody wants it, drops
   * everything.
   */
  #drop(): void {
    if (this.#first === 0 && this.#keptBytes <= windowBytes) return;
    if (this.#readers.size === 0 && this.#isWanted) return;
    let needed = Infinity;
    for (const { at } of this.#readers) needed = Math.min(needed, at);
    while (this.#chunks.length > 0 && this.#first < needed) {
      this.#keptBytes -= this.#chunks.shift()?.length ?? 0;
      this.#first++;
    }
    if (this.#keptBytes <= windowBytes) this.#room.resolve();
  }

  #leaveBehind(): void {
    if (!this.#canRest || ![...this.#readers].some((reader) => reader.isWaiting)) return;
    for (const reader of this.#readers) {
      if (reader.at !== this.#first) continue;
      reader.isBehind = true;
      this.#isLeft = true;
      this.#readers.delete(reader);
    }
    this.#drop();
  }
}
