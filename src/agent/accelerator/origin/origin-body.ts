// The body of an origin's answer, given out piece by piece to one taker, at the taker's pace: no promise and no stream for a piece.

import type { Readable } from "node:stream";
import { kept } from "../shared-reads.ts";

export interface BodyTaker {
  /**
   * `isLast`: the whole body has come with it. False: no more before `resume`. The memory of the bytes may be written over when this has returned: whatever
   * is to stay goes through `kept`.
   */
  piece(bytes: Uint8Array, isLast: boolean): boolean;
  /** The body is complete. */
  end(): void;
  /** The origin has cut it or fallen silent, or it is not wanted any more. */
  fail(error: Error): void;
}

export interface OriginBody {
  /** Gives the body to this taker: at once what has come, then what comes. To be called once. */
  flow(taker: BodyTaker): void;
  /** The taker has room again. */
  resume(): void;
  /** Frees the origin's connection. The taker, if there is one, is told nothing more. It has no effect once all has been told. */
  discard(): void;
}

/** Where pieces come from. Both may be called at any time, and more often than needed. */
export type BodySource = { readonly pause: () => void; readonly resume: () => void };

/** What comes before anybody takes it. */
const waitingBytesMax = 65_536;

/** Between the source of a body and its taker: keeps what comes before there is one, and while he has no room. */
export class BodyGate {
  readonly #source: BodySource;
  #taker: BodyTaker | undefined;
  #isPaused = false;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** What the taker has still to be told. */
  #end: "complete" | Error | undefined;
  #isDropped = false;

  constructor(source: BodySource) {
    this.#source = source;
  }

  /** The pieces before it are those of a body that goes on, or of one that has ended. */
  give(data: Uint8Array, isLast: boolean): void {
    if (this.#isDropped) return;
    if (this.#taker !== undefined && !this.#isPaused) {
      if (this.#taker.piece(data, isLast) || isLast) return;
      this.#isPaused = true;
      this.#source.pause();
      return;
    }
    this.#waiting.push(kept(data));
    this.#waitingBytes += data.length;
    if (this.#waitingBytes > waitingBytesMax) this.#source.pause();
  }

  end(end: "complete" | Error): void {
    this.#end = end;
    if (!this.#isPaused) this.#giveWaiting();
  }

  flow(taker: BodyTaker): void {
    this.#taker = taker;
    this.#giveWaiting();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#giveWaiting();
  }

  /** Nobody wants the rest. */
  drop(): void {
    this.#isDropped = true;
    this.#taker = undefined;
    this.#waiting.length = 0;
  }

  /** Gives out what waits, and the end behind it. */
  #giveWaiting(): void {
    while (this.#taker !== undefined && !this.#isPaused) {
      const data = this.#waiting.shift();
      if (data === undefined) break;
      this.#waitingBytes -= data.length;
      const isLast = this.#waiting.length === 0 && this.#end === "complete";
      if (!this.#taker.piece(data, isLast) && !isLast) this.#isPaused = true;
    }
    const taker = this.#taker;
    if (taker === undefined || this.#isPaused) return;
    if (this.#end === undefined) {
      this.#source.resume();
      return;
    }
    this.#taker = undefined;
    if (this.#end === "complete") taker.end();
    else taker.fail(this.#end);
  }
}

/** Reads a body as a loop. Whoever leaves the loop early discards the body. */
export async function* piecesOf(body: OriginBody): AsyncGenerator<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let bytesHeld = 0;
  let isOver = false;
  let failure: Error | undefined;
  let wake: (() => void) | undefined;
  const told = (): void => wake?.();
  body.flow({
    piece: (bytes) => {
      pieces.push(kept(bytes));
      bytesHeld += bytes.length;
      told();
      return bytesHeld <= waitingBytesMax;
    },
    end: () => {
      isOver = true;
      told();
    },
    fail: (error) => {
      failure = error;
      told();
    },
  });
  try {
    for (;;) {
      const piece = pieces.shift();
      if (piece !== undefined) {
        bytesHeld -= piece.length;
        yield piece;
      } else if (failure !== undefined) throw failure;
      else if (isOver) return;
      else {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        body.resume();
        await promise;
      }
    }
  } finally {
    body.discard();
  }
}

/** A stream as a body. */
export function bodyOfStream(stream: Readable): OriginBody {
  stream.on("error", () => {}); // Told to the taker; there may be none yet.
  let isOver = false;
  return {
    flow: (taker) => {
      const cut = (): void => {
        if (!isOver) taker.fail(stream.errored ?? new Error("the origin cut its answer"));
        isOver = true;
      };
      stream.once("close", cut);
      stream.once("end", () => {
        if (!isOver) taker.end();
        isOver = true;
      });
      stream.on("data", (bytes: Uint8Array) => {
        if (!isOver && !taker.piece(bytes, false)) stream.pause();
      });
      if (stream.destroyed) cut();
    },
    resume: () => void stream.resume(),
    discard: () => {
      isOver = true;
      if (!stream.readableEnded) stream.destroy();
    },
  };
}
